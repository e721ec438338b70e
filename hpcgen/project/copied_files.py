"""What of the project goes into the image, and what stays behind: secrets, what jobs leave, and data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from glob import escape

from hpcgen.catalog.copied import check_public, files_of
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.stack import Copied, Stack
from hpcgen.core.secret_rules import secret_file
from hpcgen.core.support.units import size, some
from hpcgen.project.command_words import commands_of
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found
from hpcgen.project.languages import language_of
from hpcgen.readers.data_pointers import dvc_data, lfs_pointers
from hpcgen.readers.folder import FolderFile, ProjectFolder

_OWN = ("hpcgen.yaml", "hpcgen.lock", "*.sif", "*.sqfs")
"""What hpcgen itself leaves in the folder; a changed stack would be other code."""
_LEFT = ("slurm-*.out", "*.o[0-9]*", "*.e[0-9]*", "*.o", "*.pyc", "*.egg-info")
_CACHES = ("node_modules", "wandb", "mlruns", "lightning_logs")
_LARGE, _LARGE_FILE = 1024**3, 50 * 1024**2
"""Bytes of a folder and of a file that are data rather than code; a folder called like data is after a file's."""
_DATA = re.compile(
    r"data|datasets?|checkpoints?|ckpts?|weights|pretrained(_models)?|outputs?|results|logs|runs|figures"
)
_MOST_FOLDERS, _MOST_NAMES = 300, 30
_MANY = 4
"""Large files of a folder with one ending, which then stand for all of that ending."""


def choose_copied(found: Found, draft: Draft) -> None:
    """The ``copy`` of the stack, where the project has code that is compiled or started."""
    named = any(word.startswith(f"{APP}/") for words in commands_of(draft.data["run"]) for word in words)
    if not (found.sources or language_of(draft) or "build" in draft.data or named or draft.notebooks):
        return
    wanted = _hidden(found)
    # Of the crates in a folder vendor, cargo reads .cargo-checksum.json.
    vendored = found.build is not None and any("vendor" in each.word for each in found.build.options)
    letters = "".join(dict.fromkeys([*(name[1] for name in wanted), *("c" if vendored else "")]))
    hidden = (f".[!{letters}]*" if letters else ".*", *((".c[!a]*", ".cache", ".cargo") if vendored else ()))
    why = "hidden files are caches, settings and secrets" + (
        f"; the build names {some(wanted)}" if wanted else " (.env)"
    )
    ignore = dict.fromkeys(hidden, why)
    ignore |= dict.fromkeys(_OWN, "files that hpcgen writes here")
    names = [each.path.rpartition("/")[2] for each in found.tree.files]
    for each in found.tree.files:
        if secret_file(each.path) and not any(part.startswith(".") for part in each.path.split("/")):
            ignore[escape(each.path)] = "it may be a secret, and everybody can read an image"
    for path in found.secret_scripts:
        ignore[escape(path)] = "there may be a secret in it, and everybody can read an image"
        if any(f"{APP}/{path}" in word for words in commands_of(draft.data["run"]) for word in words):
            draft.remark(f"{path} is started and not in the image: take the secrets out of it, and it out of `ignore`")
    for pattern in _LEFT:
        if any(fnmatchcase(name, pattern) for name in names):
            ignore[pattern] = "left by builds and jobs"
    for top in found.tree.tops:
        if top.name.startswith("."):
            continue
        if top.kind == "link":
            ignore[top.name] = "a link to a folder, or out of this one"
        elif top.kind == "environment":
            ignore[f"{top.name}/*"] = "an environment of this machine"
        elif top.kind == "cmake":
            ignore[f"{top.name}/*"] = "built for this machine"
        elif top.folder and top.name in _CACHES:
            ignore[f"{top.name}/*"] = "results and downloads"
    for path in found.tree.links:
        ignore[escape(path)] = "a link to a folder, or out of this one"
    ignore |= _data(found, [pattern for pattern in ignore if pattern.endswith("/*")], draft)
    if found.build is not None:
        for program in found.build.programs if found.build.kind == "make" else []:
            if found.tree.has(program.path):
                ignore[program.path] = "compiled for this machine"
    _put(found, draft, ignore)


def _hidden(found: Found) -> list[str]:
    """Hidden files that the build cannot do without, as its file names them; those beginning like .env left out."""
    if found.build is None:
        return []
    text = found.read(lambda folder, path: folder.text(path), found.build.file) or ""
    folders = list(dict.fromkeys(["", *(each.path.rpartition("/")[0] for each in found.tree.files)]))[:_MOST_FOLDERS]
    names = dict.fromkeys(re.findall(r"(?<=[\s/\"'(=])\.[A-Za-z][\w.-]{2,60}", text))
    return [
        name
        for name in list(names)[:_MOST_NAMES]
        if not secret_file(name)
        and not re.match(r"\.e|\.git", name)
        and any((found.top / folder / name).is_file() for folder in folders)
    ]


def _data(found: Found, left: list[str], draft: Draft) -> dict[str, str]:
    """Patterns of data: what stands for it, large files, and folders of it; ``left``: patterns of what stays anyhow."""
    patterns: dict[str, str] = {}
    pointers = lfs_pointers(ProjectFolder(found.top), found.tree)
    for path in pointers:
        patterns[escape(path)] = "a pointer of git-lfs, whose data was not fetched"
    there = {each.path for each in found.tree.files}
    for path in dvc_data(found.tree):
        inside = any(each.startswith(f"{path}/") for each in there)
        patterns[f"{escape(path)}/*" if inside else escape(path)] = "data that DVC keeps"
    known = [*left, *patterns]
    files = [each for each in found.tree.files if not any(fnmatchcase(each.path, one) for one in known)]
    sizes: dict[str, int] = {}
    for pattern, why, amount in _data_folders(files):
        if not any(fnmatchcase(pattern, outer) for outer in sizes):
            patterns[pattern], sizes[pattern] = why, amount
    files = [each for each in files if not any(fnmatchcase(each.path, one) for one in sizes)]
    for pattern, why, amount in _large_files(files):
        patterns[pattern], sizes[pattern] = why, amount
    told = [f"{pattern.removesuffix('/*')} ({size(amount)})" for pattern, amount in sizes.items()]
    told += [pattern.removesuffix("/*") for pattern in patterns if pattern not in sizes]
    if told:
        bound = "; `binds` in the stack brings it into the container" if "binds" in Stack.__struct_fields__ else ""
        text = f"data that is not in the image: {some(told, 8)}; a job sees the folder that it starts in{bound}"
        draft.remark(f"{text}. What belongs into the image is taken out of `ignore`")
    return patterns


def _large_files(files: list[FolderFile]) -> Iterator[tuple[str, str, int]]:
    """Patterns of large files, why, and how much they are."""
    alike: dict[str, list[FolderFile]] = {}
    for each in files:
        if each.size > _LARGE_FILE:
            folder, _, name = each.path.rpartition("/")
            alike.setdefault(f"{folder}/*.{name.rpartition('.')[2]}".lstrip("/"), []).append(each)
    for pattern, group in alike.items():
        why = "large files of data, which belong on the site's file system"
        if len(group) > _MANY:
            yield pattern, why, sum(each.size for each in group)
        else:
            yield from ((escape(each.path), why, each.size) for each in group)


def _data_folders(files: list[FolderFile]) -> Iterator[tuple[str, str, int]]:
    """The same of folders without code, the outer ones before those in them."""
    sums: dict[str, int] = {}
    small: dict[str, int] = {}
    code: set[str] = set()
    for each in files:
        parts = each.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            sums[folder] = sums.get(folder, 0) + each.size
            small[folder] = small.get(folder, 0) + (each.size if each.size <= _LARGE_FILE else 0)
            if each.path.endswith((".py", ".c", ".cc", ".cpp", ".cu", ".f90", ".jl", ".R", ".sh")):
                code.add(folder)
    for folder, total in sorted(sums.items()):
        named = any(_DATA.fullmatch(part.lower()) for part in folder.split("/"))
        if folder not in code and total > (_LARGE_FILE if named else _LARGE):
            yield f"{escape(folder)}/*", "data, which belongs on the site's file system", total
        elif small[folder] > _LARGE and "/" not in folder:
            yield f"{escape(folder)}/*", "data, with some code in it, which belongs on the site's file system", total


def _put(found: Found, draft: Draft, ignore: dict[str, str]) -> None:
    entry = {"from": ".", "to": APP, "ignore": list(ignore)}
    draft.put(("copy",), [entry], f"the project's own files; they are in {APP} of the image")
    groups: dict[str, list[str]] = {}
    for pattern, why in ignore.items():
        groups.setdefault(why, []).append(pattern)
    for why, patterns in groups.items():
        draft.because(("copy",), patterns, f"without {' '.join(patterns)}: {why}")
    try:
        copied = Copied(".", APP, list(ignore))
        check_public((path for path, _ in files_of(found.top, copied)), copied)
    except HpcgenError as error:
        draft.problems += error.problems
