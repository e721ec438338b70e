"""What lies below a prefix is changed: all files of one name together, nobody else's, and removed again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from hpcgen.core.errors import OutputError, Problems
from hpcgen.core.support.below import rmdir_below, unlink_below
from hpcgen.core.support.hashing import hash_file, sha256_of
from hpcgen.core.support.writing import KitFile, explained, write_among, write_file
from hpcgen.running.install.manifest import (
    InstalledFile,
    InstallRecord,
    folders_above,
    installed_in,
    manifest_path,
    manifest_text,
)


def install(
    prefix: Path,
    installed: InstallRecord,
    files: Mapping[str, KitFile],
    outside: Mapping[Path, str] | None = None,
    *,
    force: bool = False,
) -> InstallRecord:
    """Write the files of an image below a prefix, in the place of those that it had there.

    Parameters
    ----------
    installed: what is said of them, without files and folders.
    files: path below the prefix → text.
    outside: files elsewhere, by absolute path.
    force: files of it that somebody changed are written over.

    Returns
    -------
    What was recorded.

    Raises
    ------
    OutputError: a file is somebody else's or was changed; it cannot be written. All below the prefix is as before.
    """
    others = installed_in(prefix)
    old = others.pop(installed.name, None)
    outside = outside or {}
    _refuse(prefix, files, outside, old, others, force=force)
    marker = manifest_path(installed.name)
    new = folders_above([*files, marker])
    known = {folder for each in (*others.values(), *([old] if old is not None else [])) for folder in each.folders}
    record = replace(
        installed,
        files=[InstalledFile(path=path, sha256=sha256_of(file.text)) for path, file in sorted(files.items())],
        folders=[folder for folder in new if folder in known or not (prefix / folder).exists()],
        outside={str(path): sha256_of(text) for path, text in outside.items()},
    )
    retired = frozenset(each.path for each in old.files) - files.keys() if old is not None else frozenset()
    for path, text in outside.items():
        write_file(path, text, folders=True)
    write_among(prefix, {**files, marker: KitFile(manifest_text(record))}, frozenset(retired), marker)
    if old is not None:
        _remove_outside(path for path in old.outside if path not in record.outside)
    return record


def uninstall(prefix: Path, installed: InstallRecord, *, force: bool = False) -> list[Path]:
    """Remove what was installed, and the folders that were made for it where nothing else is in them.

    Parameters
    ----------
    force: files that somebody changed, too.

    Returns
    -------
    What was removed.

    Raises
    ------
    OutputError: a file was changed, so that nothing was removed; or one cannot be removed.
    """
    problems = Problems()
    marker = manifest_path(installed.name)
    paths = [each.path for each in installed.files]
    for above in folders_above([*paths, marker]):
        if above != "." and (prefix / above).is_symlink():
            problems.add(f"{prefix / above} is a link, and what it leads to was not installed", remedy="remove it")
    every = {prefix / each.path: each.sha256 for each in installed.files}
    every |= {Path(path): sha256 for path, sha256 in installed.outside.items()}
    for path, sha256 in every.items():
        if not force and os.path.lexists(path) and _hash(path) != sha256:
            problems.add(f"{path} was changed after it was installed", remedy="keep a copy of it, then --force")
    problems.raise_as(OutputError)
    # The record last: what stops here is continued by the same command.
    removed = [*_remove_outside(installed.outside), *_remove(prefix, [*paths, marker])]
    for folder in installed.folders:
        with contextlib.suppress(OSError):
            prefix.rmdir() if folder == "." else rmdir_below(prefix, folder)
    return removed


def _refuse(
    prefix: Path,
    files: Mapping[str, KitFile],
    outside: Mapping[Path, str],
    old: InstallRecord | None,
    others: Mapping[str, InstallRecord],
    *,
    force: bool,
) -> None:
    """OutputError with all files that are somebody else's, or were changed."""
    problems = Problems()
    own = {prefix / each.path: each.sha256 for each in old.files} if old is not None else {}
    own |= {Path(path): sha256 for path, sha256 in old.outside.items()} if old is not None else {}
    owner = {prefix / file.path: name for name, each in others.items() for file in each.files}
    owner |= {Path(path): name for name, each in others.items() for path in each.outside}
    for path in dict.fromkeys([*(prefix / each for each in files), *outside, *own]):
        if not os.path.lexists(path):
            continue
        if path in owner:
            remedy = f"choose other --command names, or remove it: hpcgen uninstall {owner[path]} --prefix {prefix}"
            problems.add(f"{path} belongs to {owner[path]}", remedy=remedy)
        elif path not in own:
            problems.add(
                f"{path} already exists, and hpcgen did not write it", remedy="move it away, or another --prefix"
            )
        elif not force and _hash(path) != own[path]:
            problems.add(f"{path} was changed after it was installed", remedy="keep a copy of it, then --force")
    problems.raise_as(OutputError)


def _hash(path: Path) -> str:
    """The sha256 of a file; "" of what is no file."""
    try:
        return hash_file(path)[0]
    except OSError:
        return ""


def _remove_outside(paths: Iterable[str]) -> list[Path]:
    """Remove files elsewhere, with their folder and the one above where these are empty then."""
    removed = []
    for path in map(Path, paths):
        # The project's own folder may be reached by links, as homes often are.
        project = path.parents[2]
        removed += _remove(project, [str(path.relative_to(project))])
    for path in removed:
        for folder in list(path.parents)[:2]:
            with contextlib.suppress(OSError):
                folder.rmdir()
    return removed


def _remove(folder: Path, names: Iterable[str]) -> list[Path]:
    removed = []
    for name in names:
        path = folder / name
        with explained(path), contextlib.suppress(FileNotFoundError):
            unlink_below(folder, name)
            removed.append(path)
    return removed
