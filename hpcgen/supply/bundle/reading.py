"""A bundle to be read where it lies: a folder, a tar file, or its pieces. Nothing is unpacked, nothing is believed.

Only regular files with plain relative paths are there to be read; everything else is a problem, told by ``problems``.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.bundle import Manifest
from hpcgen.core.model.image_paths import MANIFEST
from hpcgen.core.support.hashing import open_plain
from hpcgen.core.support.limits import BoundedMember
from hpcgen.supply.bundle.documents import MANIFEST_BYTES, read_record
from hpcgen.supply.bundle.parts import TOP, JoinedFiles, Slice

MOST_FILES = 1_000_000
SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~^%!@=-]*(/[A-Za-z0-9_][A-Za-z0-9._+~^%!@=-]*)*")
_LONGEST = 4096
_BUFFER = 1024 * 1024


class BundleFile(msgspec.Struct, frozen=True):
    """A file of a bundle: its size, and how it is opened, in whatever thread."""

    size: int
    open: Callable[[], BinaryIO]


class BundleReader:
    """A bundle as it lies somewhere.

    files: what there is to be read, by relative path.
    problems: what there is beside that, in words.
    empty: folders in which there is nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, BundleFile] = {}
        self.problems: list[str] = []
        self.empty: list[str] = []

    def read(self, path: str, most: int = MANIFEST_BYTES) -> bytes:
        """The bytes of a small file; InputError where it is not there or larger than ``most``."""
        held = self.files.get(path)
        if held is None:
            raise InputError(f"{self.path} has no {path}", remedy="name a complete bundle")
        if held.size > most:
            raise InputError(
                f"{path} in {self.path} is far too large: {held.size} bytes",
                remedy="not a bundle from hpcgen; copy or fetch it again",
            )
        with held.open() as stream:
            return stream.read(most)

    def manifest_bytes(self) -> bytes:
        """``bundle.json`` as it is; InputError where it is missing."""
        if MANIFEST not in self.files:
            raise InputError(
                f"{self.path} is not a bundle: it has no {MANIFEST}",
                expected="the folder of a bundle, its tar file, or the first of its pieces (.000)",
            )
        return self.read(MANIFEST)

    def manifest(self) -> Manifest:
        """The manifest; InputError where it is missing or not understood."""
        return read_record(self.manifest_bytes(), Manifest, f"{self.path}/{MANIFEST}")


class _Folder(BundleReader):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        pending = [""]
        while pending and len(self.files) < MOST_FILES:
            at = pending.pop()
            empty = True
            with os.scandir(path / at) as entries:
                for entry in entries:
                    empty = False
                    self._take(f"{at}/{entry.name}" if at else entry.name, entry, pending)
            if empty and at:
                self.empty.append(at)

    def _take(self, name: str, entry: os.DirEntry[str], pending: list[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        place = self.path / name
        if stat.S_ISDIR(status.st_mode):
            pending.append(name)
        elif not stat.S_ISREG(status.st_mode):
            self.problems.append(f"{printable(name)} is {_kind(status.st_mode)}, not a file")
        elif not SAFE.fullmatch(name):
            self.problems.append(f"{printable(name)} is not a valid name for a file of a bundle")
        else:
            self.files[name] = BundleFile(status.st_size, lambda: open_plain(place))


class _Tar(BundleReader):
    def __init__(self, path: Path, pieces: list[Path]) -> None:
        super().__init__(path)
        self.pieces = pieces
        self.length = 0
        self._folders: set[str] = set()
        self._filled: set[str] = {"", ".", TOP}
        try:
            with JoinedFiles(pieces) as stream:
                self.length = stream.length
                self._list(stream)
        except OSError as failure:
            raise InputError(f"{path} cannot be read: {failure.strerror or failure}") from failure

    def _list(self, stream: JoinedFiles) -> None:
        try:
            buffered = io.BufferedReader(stream)
            with tarfile.open(fileobj=buffered, mode="r:", tarinfo=BoundedMember, errorlevel=2) as archive:
                while (member := archive.next()) is not None and len(self.files) < MOST_FILES:
                    archive.members.clear()  # type: ignore[attr-defined]
                    self._take(member)
                self.empty = sorted(self._folders - self._filled)
                if archive.offset + tarfile.BLOCKSIZE > self.length:
                    self.problems.append("the tar file is truncated: its end is missing")
        except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError, MemoryError) as failure:
            self.problems.append(f"the tar file is damaged or truncated ({failure})")

    def _take(self, member: tarfile.TarInfo) -> None:
        name = member.name.removeprefix("./").rstrip("/") if len(member.name) < _LONGEST else "a name that never ends"
        shown = printable(name)
        inside = name.removeprefix(f"{TOP}/")
        self._filled.update(above(inside))
        if member.isdir() and (name in ("", ".", TOP) or SAFE.fullmatch(inside)):
            self._folders.add(inside)
            return
        if name.startswith("/") or ".." in name.split("/"):
            self.problems.append(f"{shown} leads out of the folder")
        elif member.issym() or member.islnk():
            kind = "a symbolic link" if member.issym() else "a hard link"
            self.problems.append(f"{shown} is {kind} to {printable(member.linkname)}, not a file")
        elif not member.isreg() or member.issparse():
            self.problems.append(f"{shown} is {'a sparse file' if member.issparse() else 'not a regular file'}")
        elif not SAFE.fullmatch(inside):
            self.problems.append(f"{shown} is not a valid name for a file of a bundle")
        elif inside in self.files:
            self.problems.append(f"{shown} occurs twice")
        elif member.offset_data + member.size > self.length:
            self.problems.append(
                f"{shown} is truncated: {max(self.length - member.offset_data, 0)} of {member.size} bytes"
            )
        else:
            start, count = member.offset_data, member.size
            self.files[inside] = BundleFile(count, lambda: self._slice(start, count))

    def _slice(self, start: int, count: int) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(Slice(JoinedFiles(self.pieces), start, count), _BUFFER))


def open_bundle(path: Path) -> BundleReader:
    """A bundle to be read: a folder, ``FILE.tar``, or the first of its pieces, ``FILE.tar.000``.

    InputError: there is nothing of that kind.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            return _Folder(path)
    except OSError as failure:
        first = path.with_name(f"{path.name}.000")
        if isinstance(failure, FileNotFoundError) and first.is_file():
            return open_bundle(first)
        raise InputError(
            f"{path} cannot be read: {failure.strerror}", remedy="name a bundle: a folder, or its tar file"
        ) from failure
    if re.search(r"\.\d{3}$", path.name):
        return _pieces(path)
    return _Tar(path, [path])


def _pieces(path: Path) -> BundleReader:
    """All pieces of which this is one; a problem for each that their sums name and that is not there."""
    stem = path.name[:-4]
    found = sorted(each for each in path.parent.iterdir() if re.fullmatch(re.escape(stem) + r"\.\d{3}", each.name))
    source = _Tar(path.with_name(stem), _gapless(found, path))
    sums = path.with_name(f"{stem}.SHA256SUMS")
    if not sums.is_file():
        source.problems.append(f"{sums.name}, which lists the pieces, is missing")
        return source
    with open_plain(sums) as stream:
        lines = stream.read(1024 * 1024).decode("utf-8", "replace").splitlines()
    listed = [line[66:] for line in lines]
    names = [each.name for each in found]
    source.problems += [f"the piece {printable(name)} is missing" for name in listed if name not in names]
    source.problems += [f"the piece {name} does not belong to the others" for name in names if name not in listed]
    return source


def _gapless(pieces: list[Path], path: Path) -> list[Path]:
    """The pieces up to the first that is missing: what is behind a gap is not where it belongs."""
    whole = []
    for number, piece in enumerate(pieces):
        if not piece.name.endswith(f".{number:03d}"):
            break
        whole.append(piece)
    if not whole:
        raise InputError(f"the first piece, {path.name[:-4]}.000, is missing", remedy="copy all pieces")
    return whole


def printable(text: str) -> str:
    """A name from outside for a message."""
    short = text if len(text) <= 200 else f"{text[:200]}…"
    return short if short.isprintable() and short else repr(short)


def above(path: str) -> Iterator[str]:
    """The folders that something lies in."""
    while path := path.rpartition("/")[0]:
        yield path


def _kind(mode: int) -> str:
    return (
        "a symbolic link"
        if stat.S_ISLNK(mode)
        else "a device"
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
        else "a named pipe or socket"
    )
