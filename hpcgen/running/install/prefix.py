"""What lies below a prefix is changed: all files of one name together, nobody else's, and removed again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from hpcgen.core.errors import InputError, OutputError, Problems
from hpcgen.core.support.below import rmdir_below, unlink_below
from hpcgen.core.support.file_formats import NewerFormatError
from hpcgen.core.support.hashing import hash_file, sha256_of
from hpcgen.core.support.placing import remove_empty
from hpcgen.core.support.refusals import explained
from hpcgen.core.support.writing import KitFile, settled, write_among, write_file
from hpcgen.running.install.files import written_for
from hpcgen.running.install.manifest import (
    MANIFEST,
    SHARE,
    InstalledFile,
    InstallRecord,
    folders_above,
    installed_as,
    manifest_path,
    manifest_text,
    names_in,
    read_manifest,
)


def install(
    prefix: Path,
    installed: InstallRecord,
    files: Mapping[str, KitFile],
    outside: Mapping[Path, str] | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> InstallRecord:
    """Write the files of an image below a prefix, in the place of those that it had there.

    Returns what was recorded.

    installed: what is said of them, without files and folders.
    files: path below the prefix → text.
    outside: files elsewhere, by absolute path.
    force: files of it that somebody changed are written over.
    tell: hears of records that are damaged.
    OutputError: a file is somebody else's or was changed; it cannot be written. All below the prefix is as before.
    InputError: a newer hpcgen wrote the record of what is replaced.
    """
    outside = outside or {}
    with _made(prefix), _settled(prefix):
        others = _others(prefix, installed.name, tell)
        old = _older(prefix, installed, others, tell)
        _refuse(prefix, files, outside, old, others, force=force)
        marker = manifest_path(installed.name)
        # Nobody misses a prefix that had nothing in it.
        there = {folder for folder in folders_above([*files, marker]) if (prefix / folder).exists()}
        there -= set() if any(prefix.iterdir()) else {"."}
        known = {folder for each in (*others.values(), *([old] if old is not None else [])) for folder in each.folders}
        record = replace(
            installed,
            files=[InstalledFile(path=path, sha256=sha256_of(file.text)) for path, file in sorted(files.items())],
            folders=[folder for folder in folders_above([*files, marker]) if folder in known or folder not in there],
            outside={str(path): sha256_of(text) for path, text in outside.items()},
        )
        retired = frozenset(each.path for each in old.files) - files.keys() if old is not None else frozenset()
        stale = (
            {path: sha for path, sha in old.outside.items() if path not in record.outside} if old is not None else {}
        )
        for path, text in outside.items():
            write_file(path, text, folders=True)
        # Recorded until it is gone, so that it is not forgotten by a process that is killed before.
        first = replace(record, outside={**record.outside, **stale})
        write_among(prefix, {**files, marker: KitFile(manifest_text(first))}, frozenset(retired), marker)
        if stale:
            _remove_outside(stale)
            write_file(prefix / marker, manifest_text(record))
        return record


def uninstall(prefix: Path, name: str | None = None, *, force: bool = False) -> tuple[InstallRecord, list[Path]]:
    """Remove what was installed, and the folders that were made for it where nothing else is in them.

    Returns what was installed, and the files that were removed.

    name: as it was installed; None where it is the only one.
    force: files that somebody changed, too.
    UnknownNameError, InputError: as :func:`installed_as`.
    OutputError: a file was changed, so that nothing was removed; or one cannot be removed.
    """
    if not prefix.is_dir():
        installed_as(prefix, name)
    with _settled(prefix):
        installed = installed_as(prefix, name)
        problems = Problems()
        marker = manifest_path(installed.name)
        paths = [each.path for each in installed.files]
        for above in folders_above([*paths, marker]):
            if above != "." and (prefix / above).is_symlink():
                problems.add(f"{prefix / above} is a link to something that was not installed", remedy="remove it")
        every = {prefix / each.path: each.sha256 for each in installed.files}
        every |= {Path(path): sha256 for path, sha256 in installed.outside.items()}
        for path, sha256 in every.items():
            if not force and os.path.lexists(path) and _hash(path) != sha256:
                problems.add(f"{path} was changed after it was installed", remedy="keep a copy of it, then --force")
        problems.raise_as(OutputError)
        # The record last: what stops here is continued by the same command.
        removed = [*_remove_outside(installed.outside), *_remove(prefix, paths)]
        with_record = {str(folder) for folder in PurePosixPath(marker).parents}
        _remove_folders(prefix, [folder for folder in installed.folders if folder not in with_record])
        removed += _remove(prefix, [marker])
        _remove_folders(prefix, [folder for folder in installed.folders if folder in with_record])
    return installed, removed


@contextlib.contextmanager
def _made(prefix: Path) -> Iterator[None]:
    """Make the prefix if it is not there; it goes again where nothing comes of it."""
    there = prefix.exists()
    with explained(prefix):
        prefix.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            if not there:
                prefix.rmdir()
        raise


@contextlib.contextmanager
def _settled(prefix: Path) -> Iterator[None]:
    """The prefix for this process alone, with what a killed one left brought to an end."""
    with settled(prefix):
        # Of an uninstallation that ended when its record was gone.
        for left in (prefix / SHARE).glob("*"):
            if left.is_dir() and not left.is_symlink() and not any(left.iterdir()):
                remove_empty(prefix, [f"{SHARE}/{left.name}/{MANIFEST}"])
        yield


def _remove_folders(prefix: Path, folders: Iterable[str]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            prefix.rmdir() if folder == "." else rmdir_below(prefix, folder)


def _others(prefix: Path, name: str, tell: Callable[[str], None]) -> dict[str, InstallRecord]:
    """What else is installed below a prefix, by name; a record that cannot be read stands in nobody's way.

    Its files are somebody else's then, which nothing replaces.
    """
    found = {}
    for other in names_in(prefix):
        if other != name:
            try:
                found[other] = read_manifest(prefix / manifest_path(other))
            except InputError as failure:
                tell(f"warning: {failure.problems[0].on_one_line}")
    return found


def _older(
    prefix: Path, installed: InstallRecord, others: Mapping[str, InstallRecord], tell: Callable[[str], None]
) -> InstallRecord | None:
    """What is installed by that name, if it is; made anew from what lies there where its record is damaged."""
    name = installed.name
    if name not in names_in(prefix):
        return None
    try:
        return read_manifest(prefix / manifest_path(name))
    except NewerFormatError:
        raise
    except InputError as failure:
        tell(f"warning: {failure.problems[0].message}; the files of {name} are recognised by their contents")
    owned = {file.path for each in others.values() for file in each.files}
    found = [path for path in written_for(prefix, name) if path not in owned]
    files = [InstalledFile(path=path, sha256=_hash(prefix / path)) for path in found]
    folders = [folder for folder in folders_above([*found, manifest_path(name)]) if folder != "."]
    return replace(installed, files=files, folders=folders)


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
    wanted = {prefix / each: sha256_of(file.text) for each, file in files.items()}
    wanted |= {path: sha256_of(text) for path, text in outside.items()}
    for path in dict.fromkeys([*wanted, *own]):
        if not os.path.lexists(path):
            continue
        if path in owner:
            remedy = f"choose other --command names, or remove it: hpcgen uninstall {owner[path]} --prefix {prefix}"
            problems.add(f"{path} belongs to {owner[path]}", remedy=remedy)
        elif path not in own and _hash(path) == wanted[path]:
            # As a process that was killed before it could record it leaves it.
            continue
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
