"""Files below one folder that stands for a machine's root: bounded, and never outside of that folder.

A captured tree is input from somebody else, and the files of the machine itself are written by many programs. So
links are followed as if the folder were the root (an absolute one starts at it, ``..`` stops at it), only regular files
are opened, and what is too large, binary or has control characters is refused and noted.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

MAX_TEXT = 1024 * 1024
MAX_NAMES = 10_000
MAX_ALL = 2 * 1024**3
"""Bytes of all files together: a stranger's tree can have many that are each small enough."""
_GZIP = b"\x1f\x8b"
_MAX_LINKS = 40
_MAX_PARTS = 2048


class Budget:
    """Bytes that may still be read."""

    def __init__(self, left: int = MAX_ALL) -> None:
        self.left = left

    def allows(self, size: int) -> bool:
        """Whether this much may be read; if so, it is counted."""
        if size > self.left:
            return False
        self.left -= size
        return True


class Blob:
    """An open file, read in pieces."""

    def __init__(self, descriptor: int, size: int, budget: Budget | None = None) -> None:
        self._descriptor = descriptor
        self._budget = budget or Budget()
        self.size = size

    def at(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``; fewer, or none, where the file ends or cannot be read."""
        if offset < 0 or length <= 0 or offset > self.size or not self._budget.allows(min(length, self.size - offset)):
            return b""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError:
            return b""


class MachineTree:
    """A root folder. All paths are absolute paths as the machine itself has them.

    ``refused`` says of files that were there why they were not taken.
    """

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")
        self.refused: dict[str, str] = {}
        self.budget = Budget()

    def place(self, path: str) -> str:
        """Where a path without links lies on the machine that reads it."""
        return self._root + path

    def real(self, path: str) -> str | None:
        """The path without links, as a program on the machine would see it; None where nothing is there."""
        resolved = self.trace(path)
        return resolved[0] if resolved is not None else None

    def trace(self, path: str) -> tuple[str, list[str]] | None:
        """The path without links, and the links that were followed to get there."""
        todo = _parts(path)[::-1]
        done: list[str] = []
        links: list[str] = []
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            here = "/" + "/".join([*done, part])
            target = self.link(here)
            if target is None:
                done.append(part)
                if len(done) > _MAX_PARTS:
                    return None
                continue
            links.append(here)
            if len(links) > _MAX_LINKS:
                return None
            if target.startswith("/"):
                done.clear()
            todo.extend(_parts(target)[::-1])
        found = "/" + "/".join(done)
        try:
            os.lstat(self.place(found))
        except (OSError, ValueError):
            return None
        return found, links

    def link(self, path: str) -> str | None:
        """What a link says; None for anything else. The folders before it are taken as they are."""
        try:
            return str(Path(self.place(path)).readlink())
        except (OSError, ValueError):
            return None

    def is_dir(self, path: str) -> bool:
        """Whether the path leads to a folder."""
        return stat.S_ISDIR(self._mode(path))

    def is_file(self, path: str) -> bool:
        """Whether the path leads to a regular file."""
        return stat.S_ISREG(self._mode(path))

    def exists(self, path: str) -> bool:
        """Whether the path leads to anything."""
        return self.real(path) is not None

    def names(self, path: str, pattern: str = "*") -> list[str]:
        """Names in a folder that fit a pattern, sorted; at most 10000, and none that cannot be printed."""
        real = self.real(path)
        if real is None:
            return []
        found: list[str] = []
        try:
            with os.scandir(self.place(real)) as entries:
                for entry in entries:
                    if len(found) >= MAX_NAMES:
                        self.refused[path] = f"has more than {MAX_NAMES} names; the rest was ignored"
                        break
                    if fnmatchcase(entry.name, pattern) and entry.name.isprintable():
                        found.append(entry.name)
        except OSError:
            return []
        return sorted(found)

    def glob(self, pattern: str) -> list[str]:
        """Paths that are there, of a pattern with ``*`` within names."""
        found = ["/"]
        for part in _parts(pattern):
            if any(sign in part for sign in "*?["):
                below = (_join(path, name) for path in found for name in self.names(path, part))
            else:
                below = (_join(path, part) for path in found if self.exists(_join(path, part)))
            found = list(islice(below, MAX_NAMES))
        return found

    @contextmanager
    def blob(self, path: str) -> Iterator[Blob | None]:
        """A regular file to read pieces of; None where there is none."""
        descriptor = self._open(path)
        if descriptor is None:
            yield None
            return
        try:
            yield Blob(descriptor, os.fstat(descriptor).st_size, self.budget)
        finally:
            os.close(descriptor)

    def text(self, path: str, limit: int = MAX_TEXT) -> str | None:
        """A text file; None where there is none, or where it is refused.

        Lines with control characters are left out. A file that gzip has compressed is read as what was compressed.
        """
        descriptor = self._open(path)
        if descriptor is None:
            return None
        try:
            content = _read(descriptor, limit + 1)
        finally:
            os.close(descriptor)
        if content is None:
            return None
        if not self.budget.allows(len(content)):
            self.refused[path] = "skipped: the files are too large in total"
            return None
        if content.startswith(_GZIP) and len(content) <= limit:
            try:
                content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, limit + 1)
            except zlib.error:
                self.refused[path] = "cannot be decompressed"
                return None
        if len(content) > limit:
            self.refused[path] = f"is larger than {limit} bytes"
            return None
        # Kernels of 5.15 were seen to end lists of CPUs in /sys with a zero.
        content = content.rstrip(b"\0")
        if b"\0" in content:
            self.refused[path] = "is binary, not text"
            return None
        lines, dropped = printable_lines(content)
        if dropped:
            self.refused[path] = f"has control characters; {dropped} of its lines were skipped"
        return "\n".join(lines)

    def line(self, path: str) -> str | None:
        """The first line of a small file such as those of /sys; None where there is none, or it is empty."""
        text = self.text(path, 64 * 1024)
        return (text.split("\n", 1)[0].strip() or None) if text else None

    def _mode(self, path: str) -> int:
        real = self.real(path)
        if real is None:
            return 0
        try:
            return os.lstat(self.place(real)).st_mode
        except OSError:
            return 0

    def _open(self, path: str) -> int | None:
        real = self.real(path)
        if real is None:
            return None
        try:
            # O_NONBLOCK: a pipe that nobody writes to must not stop the reader.
            descriptor = os.open(self.place(real), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        return descriptor


def printable_lines(content: bytes) -> tuple[list[str], int]:
    """Lines of text from outside, and how many were left out for their control characters."""
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    kept = [line for line in lines if line.replace("\t", " ").isprintable()]
    return kept, len(lines) - len(kept)


def _read(descriptor: int, limit: int) -> bytes | None:
    """Up to ``limit`` bytes; files of /proc and /sys have no size that could be asked."""
    pieces = []
    left = limit
    try:
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
    except OSError:
        return None
    return b"".join(pieces)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
