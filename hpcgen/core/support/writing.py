"""Outputs appear whole or not at all.

A single file is written aside and renamed over the old one. A kit, a folder of
files that belong together, is changed in one of two ways:

- The folder is not there yet: it is filled beside its final place and renamed to it.
- The folder is there (empty, or an older kit): the new files are written into a
  hidden folder inside it, and only when all of them are safely on the disk are
  the old ones renamed out and the new ones in. If a rename fails, or the user
  interrupts, all are renamed back. Renames take no room for data, so a full disk
  is met before anything was changed. If the process is killed between two renames,
  the hidden folder still holds the old files, the kit has no marker (it leaves
  first and comes last), and the next write puts the old files back before it begins.

The older kit's folder itself is not swapped for a new one: a shell that stands
in it (``-o .``) would be left in a deleted folder, and files of others in it would have to be moved.
This way nothing but hpcgen's own files is ever touched.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.support.hashing import CHUNK, open_plain
from hpcgen.core.support.leftovers import lock, new_file, remove_files
from hpcgen.core.support.swapping import SWAP, replace_together, settle, sync_folder

_MARKER = "hpcgen.lock"
"""The file by which a folder is known to be a kit."""

# errno → what happened, what to do
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, or write elsewhere"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, or write elsewhere"),
    errno.EFBIG: ("the file would be larger than allowed", "raise the limit (ulimit -f)"),
    errno.EACCES: ("permission denied", "write to one of your own folders"),
    errno.EPERM: ("permission denied", "write to one of your own folders"),
    errno.EROFS: ("the file system is read-only", "write elsewhere"),
    errno.ENOENT: ("the folder it belongs in does not exist", "create that folder first (mkdir -p)"),
    errno.ENOTDIR: ("a part of its path is not a folder", "check the path"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
}


class KitFile(msgspec.Struct, frozen=True):
    """What one file of a kit holds, and whether it can be started as a program."""

    text: str
    executable: bool = False


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of a kit that is copied from elsewhere, of any size and content: only if its sha256 is this one."""

    source: Path
    sha256: str
    executable: bool = False


def check_folder_of(path: Path) -> None:
    """OutputError where there is no folder for a file, for what takes a while before it is written."""
    with explained(path):
        path.parent.stat()


def write_file(path: Path, text: str | bytes, executable: bool = False, folders: bool = False) -> None:
    """Write ``text``, or what is no text, to ``path``, whole or not at all; an older file there is replaced.

    Permissions are those of any new file (the umask decides), with ``x`` where ``executable``.

    Parameters
    ----------
    folders: make the folders above it where they are not there.

    Raises
    ------
    OutputError: ``path`` is something else than a file, or it cannot be written; nothing has changed.
    """
    with explained(path):
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        # From here on the folder is this one, whatever its path may come to mean.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _check_replaceable(path, folder)
            _replace_file(folder, path.name, text, executable)
        finally:
            os.close(folder)


def _replace_file(folder: int, name: str, text: str | bytes, executable: bool) -> None:
    """Write a file aside and give it its name, in an open folder; a link of that name is replaced, not followed."""
    remove_files(folder)
    descriptor, aside = new_file(folder, _mode(executable))
    try:
        with open(descriptor, "wb") as stream:
            _write_out(stream, text)
            os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=folder)
        raise
    with contextlib.suppress(OSError):
        os.fsync(folder)


def write_kit(
    directory: Path,
    files: Mapping[str, KitFile | CopiedFile],
    retired: frozenset[str] = frozenset(),
    is_kit: Callable[[Path], bool] = lambda directory: (directory / _MARKER).is_file(),
) -> None:
    """Write a folder of files that belong together, whole or not at all.

    Parameters
    ----------
    directory: absent, an empty folder, or an older kit. Other files in an older kit are left alone.
    files: file → content; a file is a plain name, or a path of plain names with ``/`` between them.
    retired: names that an older kit may have and that go away if they are not among ``files``, so that
        a kit for another scheduler or engine does not leave the old job script behind.

    is_kit: whether a folder that is not empty is an older kit.

    Raises
    ------
    OutputError: ``directory`` is something else, or it cannot be written; what was there is unchanged.
    """
    if _MARKER not in files:
        raise ValueError(f"a kit needs its marker {_MARKER}")
    for name in (*files, *retired):
        if not name.isprintable() or not {"", ".", "..", SWAP}.isdisjoint(name.split("/")):
            raise ValueError(f"{name!r} is not a file of a kit")
    with explained(directory):
        if directory.is_symlink():
            raise _refusal(directory, "this is a symbolic link", "name the folder that it points to")
        if not directory.exists():
            _create_kit(directory, files)
            return
        if not directory.is_dir():
            raise _refusal(directory, "this is a file, not a folder", "name a new or an empty folder")
        with alone_in(directory, _refusal(directory, "another hpcgen is writing there", "wait until it has finished")):
            # What an earlier hpcgen may have left when it was killed.
            settle(directory)
            if any(directory.iterdir()) and not is_kit(directory):
                why = "" if (directory / _MARKER).is_file() else f" (it has no {_MARKER})"
                refused = f"this folder is not empty and not a kit{why}"
                raise _refusal(directory, refused, "name a new or an empty folder")
            _check_places(directory, (*files, *retired))
            replace_together(directory, files, retired, _MARKER, lambda folder: _fill(folder, files))


def write_among(directory: Path, files: Mapping[str, KitFile], retired: frozenset[str], marker: str) -> None:
    """Write files that belong together into a folder that is not theirs alone, whole or not at all.

    Parameters
    ----------
    directory: made where it is not there.
    files, retired: as for :func:`write_kit`; those of ``retired`` that are among ``files`` are replaced.
    marker: the one of ``files`` that says of the others that they are there.

    Raises
    ------
    OutputError: something else than a file stands in the way, or it cannot be written; what was there is unchanged.
    """
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with alone_in(directory, _refusal(directory, "another hpcgen is writing there", "wait until it has finished")):
            settle(directory)
            _check_places(directory, (*files, *retired))
            replace_together(directory, files, retired, marker, lambda folder: _fill(folder, files))


def _check_places(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        _check_replaceable(directory / name)
        for parent in (directory / name).relative_to(directory).parents[:-1]:
            _check_folder(directory / parent)


def _create_kit(directory: Path, files: Mapping[str, KitFile | CopiedFile]) -> None:
    aside = directory.parent / f".hpcgen-{secrets.token_hex(6)}"
    try:
        aside.mkdir()
        _fill(aside, files)
        aside.rename(directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync_folder(directory.parent)


def _fill(folder: Path, files: Mapping[str, KitFile | CopiedFile]) -> None:
    """Write files into an empty folder and wait until all is on the disk."""
    for name, file in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write_through(folder / name, file)
    for parent in {(folder / name).parent for name in files} | {folder}:
        sync_folder(parent)


def _write_through(path: Path, file: KitFile | CopiedFile) -> None:
    """Write a new file and wait until it is on the disk; the umask decides on its permissions."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, _mode(file.executable)), "wb") as stream:
        if isinstance(file, CopiedFile):
            copy_checked(file, stream)
        _write_out(stream, b"" if isinstance(file, CopiedFile) else file.text)


def copy_checked(file: CopiedFile, target: BinaryIO) -> None:
    """Copy a file into an open one, piece by piece.

    Raises
    ------
    InputError: it cannot be read, or is not what it is to be; what was written of it is of no use.
    """
    try:
        source = open_plain(file.source)
    except OSError as failure:
        raise InputError(f"{file.source} cannot be read: {failure.strerror}") from failure
    hasher = hashlib.sha256()
    with source:
        while data := source.read(CHUNK):
            hasher.update(data)
            target.write(data)
    if hasher.hexdigest() != file.sha256:
        raise InputError(
            f"{file.source} changed since it was planned: its sha256 is now {hasher.hexdigest()}",
            expected=f"sha256 {file.sha256}",
            remedy="if the change is meant, plan again; else put the file back",
        )


def _mode(executable: bool) -> int:
    return 0o777 if executable else 0o666


def _write_out(stream: BinaryIO, text: str | bytes) -> None:
    stream.write(text.encode("utf-8") if isinstance(text, str) else text)
    stream.flush()
    os.fsync(stream.fileno())


@contextlib.contextmanager
def alone_in(directory: Path, taken: OutputError) -> Iterator[None]:
    """Keep a second hpcgen out of a folder meanwhile, where the file system has locks; ``taken`` if one is there."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Where nothing can be locked, two writers at once are the user's risk.
        if lock(descriptor) is False:
            raise taken
        yield
    finally:
        os.close(descriptor)


def _check_replaceable(path: Path, folder: int | None = None) -> None:
    """Only a regular file may be replaced: a folder could hold work, a link points to somebody's file.

    Parameters
    ----------
    folder: the open folder that it is in, if it is to be found by that.
    """
    try:
        mode = os.lstat(path if folder is None else path.name or ".", dir_fd=folder).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode):
        return
    kind = "a symbolic link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "not a regular file"
    raise _refusal(path, f"this is {kind}", "remove it, or write elsewhere")


def _check_folder(path: Path) -> None:
    """What files of a kit lie in is a folder, or nothing yet: a link leads to what is somebody else's."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        kind = "a symbolic link" if path.is_symlink() else "a file"
        raise _refusal(path, f"this is {kind}, not a folder", "remove it, or write elsewhere")


@contextlib.contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn what the operating system says about ``target`` into an OutputError in plain words."""
    try:
        yield
    except OSError as failure:
        said = failure.strerror or str(failure)
        reason, remedy = _REASONS.get(failure.errno or 0, (said, "write elsewhere"))
        raise _refusal(target, reason, remedy) from failure
    except UnicodeEncodeError as failure:
        raise _refusal(target, "the text cannot be written as UTF-8", "report this as a bug") from failure


def _refusal(path: Path, message: str, remedy: str) -> OutputError:
    return OutputError(f"cannot write {path}: {message}", None, "", remedy)
