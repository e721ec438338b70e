"""The files of a source package, read one after the other as a stranger's: bounded, and no link of it followed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from hpcgen.core.errors import InputError
from hpcgen.core.support.limits import BoundedMember, ReadingLimit, Unpacked

UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, RuntimeError, NotImplementedError, InputError),
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
)
"""What an archive may raise that is none, or is too large."""
_READING_S = 60.0


def source_members(path: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The name of each regular file in a tar or zip archive, and what opens it while it is the current one.

    UNREADABLE: it cannot be read, or not within the limits.
    """
    limit = ReadingLimit(path.name, path.stat().st_size, _READING_S)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                limit.member()
                if not entry.is_dir() and not _is_link(entry):
                    yield entry.filename, partial(archive.open, entry)
        return
    with _unpacked(path) as stream, _members(Unpacked(stream, limit)) as packed:
        for member in packed:
            limit.member()
            if member.isfile():
                yield member.name, partial(_opened, packed, member)


def _opened(packed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = packed.extractfile(member)
    assert stream is not None, "a regular file has content"
    return stream


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return entry.external_attr >> 28 == 0o12


def _unpacked(path: Path) -> IO[bytes]:
    kinds: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return cast(IO[bytes], kinds.get(path.suffix, open)(path, "rb"))


def _members(stream: Unpacked) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(Any, stream), mode="r:", tarinfo=BoundedMember)
