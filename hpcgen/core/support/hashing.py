"""sha256 of texts, files and streams; files of any size are read piece by piece."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO

CHUNK = 1 << 20


def sha256_of(data: bytes | str) -> str:
    """The sha256 of bytes, or of a text in UTF-8, as 64 digits."""
    import hashlib

    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def file_sha256(path: Path) -> str:
    """The sha256 of a file, links followed; OSError where it cannot be read."""
    with path.open("rb") as stream:
        return hash_stream(stream)[0]


def hash_file(path: Path) -> tuple[str, int]:
    """The sha256 and the size in bytes of a regular file; OSError for a symbolic link and all else."""
    with open_plain(path) as stream:
        return hash_stream(stream)


def hash_stream(stream: IO[bytes], moved: Callable[[int], None] = lambda count: None) -> tuple[str, int]:
    """The sha256 and the length of what a stream holds; ``moved`` is told of the bytes of each piece."""
    import hashlib

    hasher = hashlib.sha256()
    count = 0
    while data := stream.read(CHUNK):
        hasher.update(data)
        count += len(data)
        moved(len(data))
    return hasher.hexdigest(), count


def read_plain(path: Path, most: int) -> bytes:
    """A regular file, links followed, as far as one byte beyond ``most``; OSError as :func:`open_plain`."""
    with open_plain(path, links=True) as stream:
        return stream.read(most + 1)


def open_plain(path: Path, links: bool = False) -> BinaryIO:
    """A regular file to be read; OSError for all else, such as a named pipe, which nobody may ever write to.

    Parameters
    ----------
    links: follow symbolic links to it.
    """
    follow = 0 if links else os.O_NOFOLLOW
    descriptor = os.open(path, os.O_RDONLY | follow | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return open(descriptor, "rb")
