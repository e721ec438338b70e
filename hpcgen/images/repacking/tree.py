"""The files below a folder, as a squashfs of them says what they are."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from hpcgen.images.repacking.layout import EMPTY, Data, Unsuitable

_LEFT_OUT = ("security.selinux", "user.rootlesscontainers")
"""Attributes that say something of the machine that builds."""


@dataclass
class Entry:
    """A file, folder or anything else; hard links to a file are one entry in several folders."""

    about: os.stat_result
    number: int
    target: bytes = b""
    links: int = 0
    data: Data = EMPTY
    later: Callable[[], Data] | None = None
    below: dict[bytes, Entry] = field(default_factory=dict)


class Tree:
    """All below a folder.

    Parameters
    ----------
    folder: where it lies.
    without: paths that are left out, with what lies below them.
    all_root: whether everything belongs to root inside.

    Raises
    ------
    Unsuitable: a file has extended attributes.
    OSError: something cannot be read.
    """

    def __init__(self, folder: bytes, without: Collection[bytes] = (), all_root: bool = False) -> None:
        self.folder, self.without, self.all_root = folder, without, all_root
        self.count = 0
        self._linked: dict[tuple[int, int], Entry] = {}
        self.root = self._entry(folder, os.lstat(folder))
        waiting = [(folder, self.root)]
        while waiting:
            path, entry = waiting.pop()
            with os.scandir(path) as found:
                inside = sorted(found, key=lambda each: each.name)
            for each in inside:
                if each.path in without:
                    continue
                below = self._entry(each.path, each.stat(follow_symlinks=False))
                entry.below[each.name] = below
                if stat.S_ISDIR(below.about.st_mode):
                    waiting.append((each.path, below))

    def _entry(self, path: bytes, about: os.stat_result) -> Entry:
        key = (about.st_dev, about.st_ino)
        several = about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode)
        if several and key in self._linked:
            entry = self._linked[key]
        else:
            self._check(path)
            self.count += 1
            entry = Entry(about, self.count)
            if stat.S_ISLNK(about.st_mode):
                entry.target = os.readlink(path)  # noqa: PTH115 - a path in bytes
            if several:
                self._linked[key] = entry
        entry.links += 1
        return entry

    @staticmethod
    def _check(path: bytes) -> None:
        try:
            names = os.listxattr(path, follow_symlinks=False)
        except OSError:
            return
        if kept := [name for name in names if name not in _LEFT_OUT]:
            raise Unsuitable(f"{os.fsdecode(path)} has the extended attribute {kept[0]}")

    def files(self) -> Iterator[tuple[bytes, bytes, Entry]]:
        """Each file with content once: its path on this machine, that in the tree, the entry."""
        seen = set()
        waiting = [(b"", self.root)]
        while waiting:
            inside, entry = waiting.pop()
            for name, each in entry.below.items():
                path = inside + b"/" + name
                if stat.S_ISDIR(each.about.st_mode):
                    waiting.append((path, each))
                elif stat.S_ISREG(each.about.st_mode) and each.about.st_size and each.number not in seen:
                    seen.add(each.number)
                    yield self.folder + path, path, each
