"""The folder of a user's project: its files as text, bounded, none outside of it, each by the reader of its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from hpcgen.core.errors import InputError, Position
from hpcgen.core.support.hashing import read_plain, sha256_of

MAX_BYTES, WRITTEN_BYTES = 8 * 1024 * 1024, 2 * 1024 * 1024
"""Of one file, and of all that one includes: locks of large projects have some megabytes, what people write less."""
MOST_FILES = 100


class ProjectFolder:
    """Reads the files of one folder; made anew for each file that somebody names.

    Parameters
    ----------
    top: the folder; no path and no link leads out of it.

    Attributes
    ----------
    read: sha256 of what was read, by path from the folder.
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

        Parameters
        ----------
        path: from the folder.
        asked: where another file names it. most: bytes that it may have, with all that were read before it.

        Raises
        ------
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

    Parameters
    ----------
    what: the kind, for messages. expected: names of such files, likewise.
    rows: a pattern of names and the reader of such files; the first that fits is taken.
    """

    def __init__(self, what: str, expected: str, rows: Sequence[tuple[str, Callable[[ProjectFolder, str], T]]]) -> None:
        self.what, self.expected, self.rows = what, expected, rows

    def read(self, top: Path, path: str) -> T:
        """What a file says.

        Parameters
        ----------
        top: the project's folder.
        path: of the file, from the folder.

        Raises
        ------
        InputError: a file of another kind, and all that is wrong in this one, each at its place.
        """
        name = path.rpartition("/")[2]
        for pattern, reader in self.rows:
            if re.fullmatch(pattern, name):
                return reader(ProjectFolder(top), path)
        raise InputError(f"{path!r} is no file of {self.what} that hpcgen reads", expected=self.expected)
