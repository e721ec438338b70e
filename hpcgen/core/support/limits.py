"""How much of an archive is read: a few bytes from a stranger can stand for terabytes, or for headers without end."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from hpcgen.core.errors import InputError

LONGEST_PATH = 4096
"""As Linux has it."""
HEADER_BYTES = 1024 * 1024
_BYTES = 512 * 1024 * 1024
_RATIO = 100
"""Images shrink to a third when they are packed, and links can have one read ten times; zeros shrink a thousandfold."""
_MEMBERS, _BYTES_A_MEMBER = 250_000, 16
READING_S = 600.0
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class ReadingLimit:
    """The limits for reading one image.

    name: of the image, for messages.
    packed: its bytes on the disk.
    seconds: after which reading it ends; None for what takes as long as it takes, such as a conversion.
    """

    def __init__(self, name: str, packed: int, seconds: float | None = None) -> None:
        self.name = name
        self._bytes = _BYTES + _RATIO * packed
        self._members = _MEMBERS + packed // _BYTES_A_MEMBER
        self._seconds = seconds
        self._end = time.monotonic() + seconds if seconds is not None else None

    def take(self, count: int) -> None:
        """Count unpacked bytes; InputError where they are too many, or time is up."""
        self._bytes -= count
        if self._bytes < 0:
            message = f"{self.name} would unpack to far more than an image of its size has"
            raise InputError(message, expected="an image, not zeros without end", remedy="unpack it yourself first")
        self._in_time()

    def member(self) -> None:
        """Count a member of a tar file; InputError as for :meth:`take`."""
        self._members -= 1
        if self._members < 0:
            raise InputError(
                f"{self.name} has far more files than an image of its size has",
                expected="an image",
                remedy="it is not read on; fetch it again, or from another place",
            )
        self._in_time()

    def _in_time(self) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise InputError(
                f"{self.name} could not be read within {self._seconds:.0f} s",
                remedy="convert it to a SIF, a squashfs or a folder, whose files can be read singly: hpcgen convert",
            )


class Unpacked(io.RawIOBase):
    """The bytes of a compressed stream, counted before they are unpacked."""

    def __init__(self, stream: IO[bytes], limit: ReadingLimit) -> None:
        super().__init__()
        self._stream, self._limit, self._at = stream, limit, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.readall()
        data = self._stream.read(size)
        self._limit.take(len(data))
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise OSError("only offsets from the start are supported")
        self._limit.take(offset - self._at if offset >= self._at else offset)
        self._at = self._stream.seek(offset)
        return self._at

    def tell(self) -> int:
        return self._at


class BoundedMember(tarfile.TarInfo):
    """A member whose headers are of a sensible size: tarfile reads them into memory as a whole."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _EXTENDED and self.size > HEADER_BYTES:
            raise tarfile.ReadError("an extended header is far too large")
        if self.type == tarfile.GNUTYPE_SPARSE:
            with _few_bytes(archive):
                return super()._proc_member(archive)  # type: ignore[misc]
        return super()._proc_member(archive)  # type: ignore[misc]

    def _proc_gnusparse_10(self, following: Any, pax_headers: Any, archive: tarfile.TarFile) -> None:
        with _few_bytes(archive):
            super()._proc_gnusparse_10(following, pax_headers, archive)  # type: ignore[misc]


class _Few:
    """A file of which a header is read, whose end is no header."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._left = stream, HEADER_BYTES

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= size
        if len(data) < size or self._left < 0:
            raise tarfile.ReadError("the map of a sparse file does not end")
        return data

    def tell(self) -> int:
        return self._stream.tell()


@contextmanager
def _few_bytes(archive: tarfile.TarFile) -> Iterator[None]:
    whole = archive.fileobj
    archive.fileobj = cast(Any, _Few(cast(IO[bytes], whole)))
    try:
        yield
    finally:
        archive.fileobj = whole
