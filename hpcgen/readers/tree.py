"""Which files a project's folder has: names and sizes alone, bounded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

MOST_ENTRIES = 20_000
DEEPEST = 8


class FolderFile(NamedTuple):
    """A file of the folder, by its path from there; ``size`` in bytes."""

    path: str
    size: int


class Top(NamedTuple):
    """What lies in the folder itself: its name, the bytes of all files in it, and what kind of folder it is.

    ``kind``: ``environment`` (of Python, by pyvenv.cfg or conda-meta), ``cmake`` (a build folder), ``link`` (a link to
    a folder, or out of this one), else empty.
    """

    name: str
    folder: bool
    size: int
    kind: str = ""


class ProjectTree(NamedTuple):
    """The files of a project with printable names. ``whole``: there were not more than are looked at."""

    files: list[FolderFile]
    tops: list[Top]
    whole: bool

    def has(self, path: str) -> bool:
        """Whether there is a file of this path."""
        return any(each.path == path for each in self.files)

    def named(self, *names: str) -> list[str]:
        """The paths of files that lie in the folder itself and have one of these names, in the names' order."""
        there = {each.path for each in self.files}
        return [name for name in names if name in there]


def project_tree(top: Path) -> ProjectTree:
    """Look at a folder. Nothing is opened; environments, build folders, links and hidden folders are not entered.

    Raises
    ------
    OSError: the folder cannot be read.
    """
    walk = _Walk(Path(os.path.realpath(top)))
    entries = sorted(os.scandir(walk.root), key=lambda each: each.name)
    tops = [walk.top(entry) for entry in entries if entry.name.isprintable()]
    return ProjectTree(walk.files, tops, walk.left > 0)


class _Walk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[FolderFile] = []
        self.left = MOST_ENTRIES

    def top(self, entry: os.DirEntry[str]) -> Top:
        """One entry of the folder itself, with all below it."""
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if target.is_dir() or not target.is_relative_to(self.root):
                return Top(entry.name, target.is_dir(), 0, "link")
        if not entry.is_dir():
            size = _size(entry)
            self.files.append(FolderFile(entry.name, size))
            return Top(entry.name, False, size)
        if kind := _kind(entry.path):
            return Top(entry.name, True, 0, kind)
        return Top(entry.name, True, 0 if entry.name.startswith(".") else self._below(entry.path, entry.name, 1))

    def _below(self, folder: str, path: str, depth: int) -> int:
        """The bytes of the files below a folder, which are added."""
        total = 0
        try:
            entries = sorted(os.scandir(folder), key=lambda each: each.name)
        except OSError:
            return 0
        for entry in entries:
            self.left -= 1
            if not entry.name.isprintable():
                continue
            if self.left <= 0:
                return total
            if entry.is_dir(follow_symlinks=False):
                hidden = entry.name.startswith(".") or entry.name == "__pycache__" or bool(_kind(entry.path))
                if not hidden and depth < DEEPEST:
                    total += self._below(entry.path, f"{path}/{entry.name}", depth + 1)
            elif entry.is_file():
                size = _size(entry)
                total += size
                self.files.append(FolderFile(f"{path}/{entry.name}", size))
        return total


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0


def _kind(folder: str) -> str:
    marks = {"pyvenv.cfg": "environment", "conda-meta": "environment", "CMakeCache.txt": "cmake"}
    return next((kind for name, kind in marks.items() if os.path.lexists(f"{folder}/{name}")), "")
