"""The stack's own files in a kit: its folder ``copy/``, and the list by which they are known, ``copy.list``."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import (
    FOLDER,
    LIST,
    MAX_BYTES,
    SELF,
    FileTree,
    TreeFile,
    below,
    file_sha256,
    parse_list,
    read_plain,
    tree_of,
)
from hpcgen.core.support.writing import CopiedFile


def files_of_trees(trees: Mapping[str, FileTree]) -> dict[str, CopiedFile]:
    """The files of a kit's folder ``copy/``, by their names in the kit. ``trees``: by where each goes in the image."""
    return {
        f"{FOLDER}/{below(file.path, target)}": CopiedFile(file.source, file.sha256, file.executable)
        for target, tree in trees.items()
        for file in tree.files
        if file.source is not None
    }


def list_text(trees: Mapping[str, FileTree]) -> str:
    """The kit's list: a line for each file, with its sha256, its mode and its path below ``copy/``."""
    lines = [
        TreeFile(below(file.path, target), file.sha256, file.executable)
        for target, tree in trees.items()
        for file in tree.files
    ]
    return tree_of(lines).text


def trees_of_list(text: str, plan: Plan, name: str) -> dict[str, FileTree]:
    """The trees of a kit's list, by where each goes; ``name`` is what messages call it.

    InputError: it is no such list, or not that of the plan.
    """
    lines = parse_list(text, name)
    trees = {}
    for copy in plan.copied:
        start = copy.to[1:]
        own = [each for each in lines if f"{each.path}/".startswith(f"{start}/")]
        files = [TreeFile(each.path[len(start) + 1 :] or SELF, each.sha256, each.executable) for each in own]
        trees[copy.to] = FileTree(files)
    if any(trees[copy.to].sha256 != copy.sha256 for copy in plan.copied) or list_text(trees) != text:
        raise InputError(f"{name} is not the list of the files that the plan names", remedy="render the kit again")
    return trees


def listed(folder: Path) -> list[str]:
    """Names of the files that an older kit copies, as far as its list can be read."""
    try:
        return names_in(read_plain(folder / LIST, MAX_BYTES).decode())
    except (OSError, ValueError, HpcgenError):
        return []


def names_in(text: str) -> list[str]:
    """Names of the files of a kit that its list names; InputError where it is damaged."""
    return [f"{FOLDER}/{file.path}" for file in parse_list(text, f"the kit's {LIST}")]


def check_copied(folder: Path, files: Mapping[str, CopiedFile]) -> None:
    """See that a kit's folder ``copy/`` has these files, as they are to be, and nothing else.

    Some engines take the folder as a whole, and follow its links.

    InputError: something is missing, is another file, or does not belong.
    """
    there = set()
    for at, folders, names in os.walk(folder / FOLDER):
        linked = [name for name in folders if Path(at, name).is_symlink()]
        there |= {(Path(at) / name).relative_to(folder).as_posix() for name in (*names, *linked)}
    wrong = sorted(there ^ files.keys())
    wrong += [name for name, file in sorted(files.items()) if name in there and not _as_listed(folder / name, file)]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InputError(
            f"the kit's {FOLDER}/ is not as its {LIST} says: {', '.join(map(ascii, wrong[:3]))}{more}",
            expected="every file of the list, as it was, and no other",
            remedy="render the kit again with -o",
        )


def _as_listed(path: Path, file: CopiedFile) -> bool:
    try:
        mode = path.lstat().st_mode
        right = stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR) == file.executable
        return right and file_sha256(path) == file.sha256
    except OSError:
        return False
