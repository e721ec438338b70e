"""The folder of a user's project: which files it has, and those as text, bounded, each by the reader of its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from hpcgen.core.errors import InputError, Position, Problem
from hpcgen.core.support.hashing import read_plain, sha256_of

MAX_BYTES, WRITTEN_BYTES = 8 * 1024 * 1024, 2 * 1024 * 1024
"""Of one file, and of all that one includes: locks of large projects have some megabytes, what people write less."""
MOST_FILES = 100


class PartlyReadError(InputError):
    """A file with mistakes; ``file``: what the rest of it says, for those who only look at it."""

    def __init__(self, problems: Iterable[Problem], file: Any) -> None:
        super().__init__(problems)
        self.file = file


class ProjectFolder:
    """Reads the files of one folder; made anew for each file that somebody names.

    ``top``: the folder; no path and no link leads out of it. ``read``: sha256 of what was read, by path from the
    folder.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self.read: dict[str, str] = {}
        self._taken = 0

    def shown(self, path: str) -> str:
        """What messages call a file."""
        return str(self.top / path)

    def at(self, where: Position) -> Position:
        """A place of a record, as messages show it."""
        return Position(self.shown(where.file), where.line, where.column)

    def beside(self, file: str, path: str) -> str:
        """A path that a file of the folder names, from the folder itself."""
        return os.path.normpath(Path(file).parent / path)

    def holds(self, path: str) -> bool:
        """Whether a path leads to something in the folder."""
        top = Path(os.path.realpath(self.top))
        found = Path(os.path.realpath(top / path)) if "\0" not in path else top.parent
        return found.is_relative_to(top) and found.exists()

    def text(self, path: str, asked: Position | None = None, most: int = WRITTEN_BYTES) -> str:
        """What a file holds.

        path: from the folder.
        asked: where another file names it. most: bytes that it may have, with all that were read before it.
        InputError: it is outside, missing, not valid UTF-8, or too large.
        """
        where = self.at(asked) if asked is not None else self.shown(path)
        said = repr(path) if asked is not None else "the file"
        top = Path(os.path.realpath(self.top))
        found = Path(os.path.realpath(top / path))
        if "\0" in path or not found.is_relative_to(top):
            raise InputError(
                f"{path!r} leads out of the folder {self.top.absolute()}",
                where,
                "a file in that folder, not a link out of it",
                "put the file there",
            )
        if len(self.read) >= MOST_FILES:
            raise InputError(f"more than {MOST_FILES} files are included", where, remedy="put them together")
        try:
            left = max(0, most - self._taken)
            data = read_plain(found, left)
        except FileNotFoundError:
            raise InputError(f"{said} is not there", where, remedy="check the spelling of its path") from None
        except OSError as failure:
            raise InputError(
                f"{said} cannot be read: {failure.strerror}", where, remedy="make it a readable file"
            ) from None
        self._taken += len(data)
        if len(data) > left:
            raise InputError(f"{said} is too large", where, f"at most {most} bytes", "check that it is the right file")
        self.read[path] = f"sha256:{sha256_of(data)}"
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as failure:
            line = data.count(b"\n", 0, failure.start) + 1
            raise InputError(
                f"the byte 0x{data[failure.start]:02x} is not UTF-8",
                Position(self.shown(path), line, 1),
                "a text file in UTF-8",
                "save the file as UTF-8",
            ) from None


# Which reader a file of a project has, by its name.

T = TypeVar("T")


class Readers(Generic[T]):
    """Readers of files of one kind.

    ``what``: the kind, for messages. ``expected``: names of such files, likewise. ``rows``: a pattern of names and the
    reader of such files; the first that fits is taken.
    """

    def __init__(self, what: str, expected: str, rows: Sequence[tuple[str, Callable[[ProjectFolder, str], T]]]) -> None:
        self.what, self.expected, self.rows = what, expected, rows

    def read(self, top: Path, path: str) -> T:
        """What a file says.

        top: the project's folder.
        path: of the file, from the folder.
        InputError: a file of another kind, and all that is wrong in this one, each at its place.
        """
        name = path.rpartition("/")[2]
        for pattern, reader in self.rows:
            if re.fullmatch(pattern, name):
                return reader(ProjectFolder(top), path)
        raise InputError(f"{path!r} is not a file of {self.what} that hpcgen reads", expected=self.expected)


MOST_ENTRIES = 20_000
DEEPEST = 8


class FolderFile(NamedTuple):
    """A file of the folder, by its path from there; ``size`` in bytes."""

    path: str
    size: int


class Top(NamedTuple):
    """What lies in the folder itself: its name, the bytes of all files in it, and what kind of folder it is.

    Environments and build folders below other folders are among them by their paths. ``kind``: ``environment`` (of
    Python, by pyvenv.cfg or conda-meta), ``cmake`` (a build folder), ``link`` (a link to a folder, to nothing, or out
    of this one), else empty.
    """

    name: str
    folder: bool
    size: int
    kind: str = ""


class ProjectTree(NamedTuple):
    """The files of a project with printable names.

    ``whole``: there were not more than are looked at. ``links``: paths below a folder that lead to a folder, to
    nothing, or out of the project, which no image can have. ``linked``: of the links to folders of the project, where
    they lead.
    """

    files: list[FolderFile]
    tops: list[Top]
    whole: bool
    links: list[str]
    linked: tuple[tuple[str, str], ...] = ()

    def behind_links(self, path: str) -> str:
        """The path of the same file without links to folders."""
        for link, folder in self.linked:
            if path.startswith(f"{link}/"):
                return f"{folder}{path[len(link) :]}".lstrip("/")
        return path

    def has(self, path: str) -> bool:
        """Whether there is a file of this path."""
        return any(each.path == path for each in self.files)

    def paths(self) -> frozenset[str]:
        """The paths of all of them."""
        return _paths_of(tuple(self.files))

    def named(self, *names: str) -> list[str]:
        """The paths of files that lie in the folder itself and have one of these names, in the names' order."""
        there = {each.path for each in self.files}
        return [name for name in names if name in there]


@lru_cache(8)
def _paths_of(files: tuple[FolderFile, ...]) -> frozenset[str]:
    return frozenset(each.path for each in files)


def project_tree(top: Path) -> ProjectTree:
    """Look at a folder. Nothing is opened; environments, build folders, links and hidden folders are not entered.

    OSError: the folder cannot be read.
    """
    walk = _Walk(Path(os.path.realpath(top)))
    entries = sorted(os.scandir(walk.root), key=lambda each: each.name)
    tops = [walk.top(entry) for entry in entries if entry.name.isprintable()]
    return ProjectTree(walk.files, [*tops, *walk.inner], walk.left > 0, walk.links, tuple(walk.linked))


class _Walk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[FolderFile] = []
        self.links: list[str] = []
        self.inner: list[Top] = []
        self.linked: list[tuple[str, str]] = []
        self.left = MOST_ENTRIES

    def top(self, entry: os.DirEntry[str]) -> Top:
        """One entry of the folder itself, with all below it."""
        if self._leads_away(entry, entry.name):
            return Top(entry.name, entry.is_dir(), 0, "link")
        if not entry.is_dir():
            size = _size(entry)
            self.files.append(FolderFile(entry.name, size))
            return Top(entry.name, False, size)
        if kind := _kind(entry.path):
            return Top(entry.name, True, 0, kind)
        return Top(entry.name, True, 0 if entry.name.startswith(".") else self._below(entry.path, entry.name, 1))

    def _leads_away(self, entry: os.DirEntry[str], path: str) -> bool:
        if not entry.is_symlink():
            return False
        target = Path(os.path.realpath(entry.path))
        if target.is_dir() and target.is_relative_to(self.root):
            self.linked.append((path, target.relative_to(self.root).as_posix().removeprefix(".")))
        return not target.is_file() or not target.is_relative_to(self.root)

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
            if self._leads_away(entry, f"{path}/{entry.name}"):
                self.links.append(f"{path}/{entry.name}")
            elif entry.is_dir(follow_symlinks=False):
                kind = _kind(entry.path)
                self.inner += [Top(f"{path}/{entry.name}", True, 0, kind)] if kind else []
                hidden = entry.name.startswith(".") or entry.name == "__pycache__" or bool(kind)
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
