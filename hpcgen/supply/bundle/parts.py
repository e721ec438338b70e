"""A bundle as one tar file, or as that file in pieces that fit a medium; and reading it back without unpacking it.

The pieces are plain pieces of the file: ``cat FILE.tar.* > FILE.tar`` (without ``.SHA256SUMS``) makes it again.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import CHUNK, open_plain
from hpcgen.core.support.placing import sync_folder
from hpcgen.supply.net.part import DiskError

TOP = "hpcgen-bundle"
"""The folder in the tar file."""

MOST_PIECES = 1000
_SMALLEST = 1_000_000
_SIZE = re.compile(r"([0-9]{1,12})\s*(|[kKMGT]i?)B?")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_size(text: str) -> int:
    """``4G`` in bytes: K, M, G, T are powers of ten, Ki, Mi, Gi, Ti of two; InputError for anything else."""
    found = _SIZE.fullmatch(text.strip())
    value = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if value < _SMALLEST:
        raise InputError(
            f"{text!r} is not a valid size", "--split", "a number with K, M, G or T, 1M or more, such as 4G"
        )
    return value


class PieceWriter(io.RawIOBase):
    """Takes bytes and writes them into one file, or into files of a given size; they are on the disk at the end.

    ``first``: the file, or with ``limit`` the name to which ``.000``, ``.001`` … are added. ``limit``: bytes of a
    piece, None for one file.
    """

    def __init__(self, first: Path, limit: int | None) -> None:
        super().__init__()
        self.first, self.limit = first, limit
        self.sums: list[tuple[str, str]] = []
        self._at = 0
        self._room = 0
        self._descriptor: int | None = None
        self._hasher = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        count = len(rest)
        try:
            while rest:
                if self._descriptor is None or (self.limit is not None and not self._room):
                    self._next()
                assert self._descriptor is not None
                piece = rest if self.limit is None else rest[: self._room]
                written = os.write(self._descriptor, piece)
                self._hasher.update(piece[:written])
                self._room -= written
                rest = rest[written:]
        except OSError as failure:
            raise DiskError(failure) from failure
        self._at += count
        return count

    def finish(self) -> list[str]:
        """Close the last piece; the names of all, and for pieces the name of their sums."""
        try:
            self._end()
            names = [name for name, _ in self.sums]
            if self.limit is not None:
                sums = self.first.with_name(f"{self.first.name}.SHA256SUMS")
                with open(sums, "w", encoding="ascii") as stream:
                    stream.writelines(f"{digest}  {name}\n" for name, digest in self.sums)
                    stream.flush()
                    os.fsync(stream.fileno())
                names.append(sums.name)
            sync_folder(self.first.parent)
        except OSError as failure:
            raise DiskError(failure) from failure
        return names

    def abandon(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _next(self) -> None:
        self._end()
        name = self.first.name if self.limit is None else f"{self.first.name}.{len(self.sums):03d}"
        self.sums.append((name, ""))
        self._room, self._hasher = self.limit or 0, hashlib.sha256()
        self._descriptor = os.open(self.first.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)

    def _end(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
            self.sums[-1] = (self.sums[-1][0], self._hasher.hexdigest())


def write_tar(
    folder: Path, paths: Sequence[str], output: PieceWriter, epoch: int, moved: Callable[[str, int], None]
) -> None:
    """The files of a bundle as a tar file: the same bytes for the same files, by whomever and whenever it is written.

    paths: relative, in the order in which they are to stand.
    epoch: the time that all files get, in seconds since 1970.
    moved: told each path and how many of its bytes more are written.
    """
    with tarfile.TarFile(fileobj=output, mode="w", format=tarfile.PAX_FORMAT, copybufsize=CHUNK) as archive:
        for path in paths:
            with open_plain(folder / path) as stream:
                member = tarfile.TarInfo(f"{TOP}/{path}")
                member.size = os.fstat(stream.fileno()).st_size
                member.mode, member.mtime = 0o644, epoch
                member.uname = member.gname = "root"
                archive.addfile(member, _Told(stream, path, moved))


class _Told(io.RawIOBase):
    """A file that tells how much of it was read."""

    def __init__(self, stream: Any, path: str, moved: Callable[[str, int], None]) -> None:
        super().__init__()
        self.stream, self.path, self.moved = stream, path, moved

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.stream.read(size)
        self.moved(self.path, len(data))
        return data


class JoinedFiles(io.RawIOBase):
    """Several files read as if they were one; for one thread alone."""

    def __init__(self, pieces: Sequence[Path]) -> None:
        super().__init__()
        self._streams = []
        self._ends: list[int] = []
        end = 0
        try:
            for piece in pieces:
                self._streams.append(open_plain(piece))
                end += os.fstat(self._streams[-1].fileno()).st_size
                self._ends.append(end)
        except OSError:
            self.close()
            raise
        self.length = end
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.length}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """The next bytes, of one piece at most."""
        import bisect

        number = bisect.bisect_right(self._ends, self._at)
        if number >= len(self._streams):
            return 0
        begin = self._ends[number - 1] if number else 0
        stream = self._streams[number]
        stream.seek(self._at - begin)
        data = stream.read(min(len(buffer), self._ends[number] - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        super().close()


class Slice(io.RawIOBase):
    """A part of a file as a file; closes the file with itself."""

    def __init__(self, stream: JoinedFiles, start: int, length: int) -> None:
        super().__init__()
        self._stream, self._rest = stream, length
        stream.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)[: self._rest]
        count = self._stream.readinto(room) if len(room) else 0
        self._rest -= count
        return count

    def close(self) -> None:
        """Close the file below too."""
        self._stream.close()
        super().close()
