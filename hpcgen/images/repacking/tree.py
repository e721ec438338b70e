"""The files below a folder, as a squashfs of them says what they are."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

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
    below: dict[bytes, Entry] = field(default_factory=dict)


class Tree:
    """All below a folder.

    Parameters
    ----------
    folder: where it lies.
    without: paths that are left out, with what lies below them.
    all_root: whether everything belongs to root inside.
    added: empty files and folders of root that are to be there too: paths in the tree and their modes, with the kind.

    Raises
    ------
    Unsuitable: the folder of something that is added is missing; a file has extended attributes.
    OSError: something cannot be read.
    """

    def __init__(
        self,
        folder: bytes,
        without: Collection[bytes] = (),
        all_root: bool = False,
        added: Mapping[bytes, int] = MappingProxyType({}),
    ) -> None:
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
        for name, mode in sorted(added.items()):
            self._add(name.split(b"/"), mode)

    def _add(self, path: list[bytes], mode: int) -> None:
        """An empty file or folder, where nothing has its name."""
        above = self.root
        for name in path[:-1]:
            if name not in above.below:
                raise Unsuitable(f"the folder of {os.fsdecode(b'/'.join(path))} is missing")
            above = above.below[name]
        if path[-1] not in above.below:
            self.count += 1
            about = os.stat_result((mode, 0, 0, 1, 0, 0, 0, 0, int(time.time()), 0))
            above.below[path[-1]] = Entry(about, self.count, links=1)

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
