"""Which reader a file of a project has, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from hpcgen.core.errors import InputError
from hpcgen.readers.folder import ProjectFolder

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
