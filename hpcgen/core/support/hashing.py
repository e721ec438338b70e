"""sha256 of texts, files, streams and lists of files; files of any size are read piece by piece."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from hpcgen.core.errors import InputError

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

    ``links``: follow symbolic links to it.
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


# Files that are copied into an image, as a list: a line for each, with what decides what it is in the image.
#
# The list's sha256 is the same wherever the files lie, whenever they were written, and whoever they belong to.

LIST = "copy.list"
"""The kit's file with the list of all that its recipe copies, by the paths in the kit's folder ``FOLDER``."""
FOLDER = "copy"
MOST_FILES = 50_000
"""Of one entry of a stack; more go as one archive."""
MAX_BYTES = 16 * 1024 * 1024
"""Of a list."""
SELF = "."
"""Stands for the path of the only file where no folder is copied, but a file."""
_LINE = r"([0-9a-f]{64}) (755|644) (.+)"


class TreeFile(msgspec.Struct, frozen=True):
    """One file by its path below the tree; ``source``: where it lies, ``bytes``: its size, as far as that is known."""

    path: str
    sha256: str
    executable: bool
    source: Path | None = None
    bytes: int | None = None

    def line(self) -> str:
        """Its line of the list: hash, mode in the image, path."""
        return f"{self.sha256} {755 if self.executable else 644} {self.path}\n"


class FileTree(msgspec.Struct, frozen=True):
    """Files sorted by their paths; of a single file its path is ``SELF``."""

    files: list[TreeFile]

    @property
    def text(self) -> str:
        """The list."""
        return "".join(file.line() for file in self.files)

    @property
    def sha256(self) -> str:
        """The hash that identifies the tree."""
        return sha256_of(self.text)

    @property
    def single(self) -> bool:
        """Whether it is one file, not a folder."""
        return [file.path for file in self.files] == [SELF]


def tree_of(files: Iterable[TreeFile]) -> FileTree:
    """A tree of files in any order."""
    return FileTree(sorted(files, key=lambda file: file.path))


def parse_list(text: str, name: str) -> list[TreeFile]:
    """The files of a list, which may be a stranger's; ``name`` is what messages call it.

    InputError: it is no such list, or a path of it is not one that :func:`wrong_name` allows.
    """
    files: list[TreeFile] = []
    for line in text.splitlines(keepends=True):
        found = re.fullmatch(_LINE, line.removesuffix("\n")) if line.endswith("\n") else None
        if found is None or (found[3] != SELF and any(map(wrong_name, found[3].split("/")))):
            raise InputError(f"{name} is damaged: {ascii(line)[:120]}", remedy="get it again from its source")
        files.append(TreeFile(found[3], found[1], found[2] == "755"))
    if len({file.path for file in files}) < len(files):
        raise InputError(f"{name} is damaged: it has a path twice", remedy="get it again from its source")
    return files


def wrong_name(name: str) -> str:
    """Why a file of this name cannot be copied into an image; "" if it can.

    Lists have a line for each file, and the shell and coreutils read them in build scripts.
    """
    if name in ("", ".", ".."):
        return "not a file name"
    if not name.isprintable():
        return "it has control characters or is not UTF-8"
    if "\\" in name:
        return "it has a backslash"
    return "it begins or ends with a space" if name != name.strip() else ""


def below(path: str, target: str) -> str:
    """Where a file of a tree lies in the kit, below ``FOLDER``, if the tree goes to ``target`` in the image."""
    return target[1:] if path == SELF else f"{target[1:]}/{path}"
