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
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import CHUNK, open_plain
from hpcgen.core.support.leftovers import PATIENCE_S, alone_in, new_file, new_folder, opened_folder, remove_left
from hpcgen.core.support.placing import SWAP, replace_together, settle, sync_folder
from hpcgen.core.support.refusals import explained, refusal

_MARKER = "hpcgen.lock"
"""The file by which a folder is known to be a kit."""


class KitFile(msgspec.Struct, frozen=True):
    """The contents of one file of a kit, and whether it is executable."""

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


def write_file(path: Path, text: str | bytes | CopiedFile, executable: bool = False, folders: bool = False) -> None:
    """Write ``text``, or what is no text, to ``path``, whole or not at all; an older file there is replaced.

    Permissions are those of any new file (the umask decides), with ``x`` where ``executable``.

    folders: make the folders above it where they are not there.
    OutputError: ``path`` is something else than a file, or it cannot be written; nothing has changed.
    InputError: what is to be copied there is not what it is to be; nothing has changed.
    """
    with explained(path):
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        # From here on the folder is this one, whatever its path may come to mean.
        with opened_folder(path.parent) as folder:
            _check_replaceable(path, folder)
            _replace_file(folder, path.name, text, executable)


def _replace_file(folder: int, name: str, text: str | bytes | CopiedFile, executable: bool) -> None:
    """Write a file aside and give it its name, in an open folder; a link of that name is replaced, not followed."""
    remove_left(folder)
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
    also_retired: Callable[[Path], Iterable[str]] = lambda directory: (),
) -> None:
    """Write a folder of files that belong together, whole or not at all.

    directory: absent, an empty folder, or an older kit. Other files in an older kit are left alone.
    files: file → content; a file is a plain name, or a path of plain names with ``/`` between them.
    retired: names that an older kit may have and that go away if they are not among ``files``, so that
        a kit for another scheduler or engine does not leave the old job script behind.
    is_kit: whether a folder that is not empty is an older kit.
    also_retired: more such names, read from the older kit when it is whole.
    OutputError: ``directory`` is something else, or it cannot be written; what was there is unchanged.
    """
    if _MARKER not in files:
        raise ValueError(f"a kit needs its marker {_MARKER}")
    for name in (*files, *retired):
        if not _is_of_kit(name):
            raise ValueError(f"{name!r} is not a file of a kit")
    with explained(directory):
        if directory.is_symlink():
            raise refusal(directory, "this is a symbolic link", "name the folder that it points to")
        if not directory.exists() and _create_kit(directory, files):
            return
        if not directory.is_dir():
            raise refusal(directory, "this is a file, not a folder", "name a new or an empty folder")
        with settled(directory):
            if any(directory.iterdir()) and not is_kit(directory):
                why = "" if (directory / _MARKER).is_file() else f" (it has no {_MARKER})"
                refused = f"this folder is not empty and not a kit{why}"
                raise refusal(directory, refused, "name a new or an empty folder")
            gone = retired.union(filter(_is_of_kit, also_retired(directory)))
            write_among(directory, files, gone, _MARKER)


def _is_of_kit(name: str) -> bool:
    return name.isprintable() and {"", ".", "..", SWAP}.isdisjoint(name.split("/"))


@contextlib.contextmanager
def settled(directory: Path) -> Iterator[None]:
    """Have a folder for this process alone, in which what a killed one left half done is brought to an end.

    Whoever changes files of a folder together reads there only within this, so that older files are seen whole.

    OutputError: another hpcgen is at work there for long; it cannot be written.
    """
    taken = refusal(directory, "another hpcgen is writing there", "wait until it has finished")
    with explained(directory), alone_in(directory, taken, PATIENCE_S):
        settle(directory)
        yield


def write_among(
    directory: Path, files: Mapping[str, KitFile | CopiedFile], retired: frozenset[str], marker: str
) -> None:
    """Write files that belong together into a folder that is :func:`settled`, whole or not at all.

    files, retired: as for :func:`write_kit`; those of ``retired`` that are among ``files`` are replaced.
    marker: the one of ``files`` that says of the others that they are there.
    OutputError: something else than a file stands in the way, or it cannot be written; what was there is unchanged.
    """
    with explained(directory):
        _check_places(directory, (*files, *retired))
        replace_together(directory, files, retired, marker, lambda folder: _fill(folder, files))


def _check_places(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        _check_replaceable(directory / name)
        for parent in (directory / name).relative_to(directory).parents[:-1]:
            _check_folder(directory / parent)


def _create_kit(directory: Path, files: Mapping[str, KitFile | CopiedFile]) -> bool:
    """Fill a folder beside its final place and rename it; False where another process was faster."""
    with opened_folder(directory.parent) as parent:
        remove_left(parent)
        descriptor, name = new_folder(parent)
        aside = directory.parent / name
        try:
            _fill(aside, files)
            aside.rename(directory)
        except BaseException as failure:
            shutil.rmtree(aside, ignore_errors=True)
            if isinstance(failure, OSError) and failure.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                return False
            raise
        finally:
            os.close(descriptor)
    sync_folder(directory.parent)
    return True


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
        _write_out(stream, file if isinstance(file, CopiedFile) else file.text)


def copy_checked(file: CopiedFile, target: BinaryIO) -> None:
    """Copy a file into an open one, piece by piece.

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


def _write_out(stream: BinaryIO, text: str | bytes | CopiedFile) -> None:
    if isinstance(text, CopiedFile):
        copy_checked(text, stream)
    else:
        stream.write(text.encode("utf-8") if isinstance(text, str) else text)
    stream.flush()
    os.fsync(stream.fileno())


def _check_replaceable(path: Path, folder: int | None = None) -> None:
    """Only a regular file may be replaced: a folder could hold work, a link points to somebody's file.

    ``folder``: the open folder that it is in, if it is to be found by that.
    """
    try:
        mode = os.lstat(path if folder is None else path.name or ".", dir_fd=folder).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode):
        return
    kind = "a symbolic link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "not a regular file"
    raise refusal(path, f"this is {kind}", "remove it, or write elsewhere")


def _check_folder(path: Path) -> None:
    """Refuse a kit's folder that is a file or a link, which may lead to somebody else's files."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        kind = "a symbolic link" if path.is_symlink() else "a file"
        raise refusal(path, f"this is {kind}, not a folder", "remove it, or write elsewhere")


class OneLine(dict[str, Any]):
    """A mapping that :func:`yaml_text` writes in one line."""


def yaml_text(data: object, *, width: int = 110, blocks: bool = False) -> str:
    """Plain data as YAML, keys in their order.

    ``width``: in characters, after which a long text goes on in the next line. ``blocks``: texts of several lines are
    written as they stand, for people.
    """
    import yaml

    # libyaml, where it is built in, writes the same several times faster.
    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Knows :class:`OneLine`."""

    def one_line(dumper: yaml.SafeDumper, value: OneLine) -> yaml.Node:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=True)

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(OneLine, one_line)
    if blocks:
        Dumper.add_representer(str, text)
    body: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)
    return body
