"""YAML files of a project, and where in their text something stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, loads
from hpcgen.core.errors import Position, Problems
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder

T = TypeVar("T")


class Wrong(Protocol):
    """Takes one more mistake of a value, whose place it knows."""

    def __call__(self, message: str, expected: str = "", remedy: str = "") -> None: ...


class YamlFile:
    """A YAML file of a project.

    Attributes
    ----------
    problems: what is wrong with it.
    """

    def __init__(self, folder: ProjectFolder, path: str, most: int = MAX_BYTES) -> None:
        """Read it; InputError as :meth:`ProjectFolder.text`, and where it is not the plain kind of YAML."""
        self.path = path
        self.folder = folder
        self.problems = Problems()
        self._document = loads(folder.text(path, most=most), folder.shown(path), LONG_LIST)

    def record(self, type_: type[T]) -> T:
        """What it holds, of the fields that ``type_`` has; InputError with the place of each that is another type."""
        return convert(self._document, type_)

    def version(self) -> str:
        """What it says at ``version``, the format of locks; empty where it says nothing."""
        return str(self._document.data.get("version", ""))

    def place(self, *path: str | int, key: bool = False) -> Position:
        """Where the value (or key) at a path from the top stands; the file by its path from the project's folder."""
        found = self._document.position(path, key)
        return Position(self.path, found.line, found.column)

    def wrong(self, message: str, path: Sequence[str | int], expected: str = "", remedy: str = "") -> None:
        """Add an error at a path from the top."""
        self.problems.add(message, self.folder.at(self.place(*path)), expected, remedy)

    def at(self, *path: str | int) -> Wrong:
        """What takes mistakes of the value at a path from the top."""

        def wrong(message: str, expected: str = "", remedy: str = "") -> None:
            self.wrong(message, path, expected, remedy)

        return wrong
