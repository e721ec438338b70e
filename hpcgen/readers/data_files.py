"""TOML and YAML files of a project, and where in their text something stands, which no reader of TOML tells."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, loads
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_PLACE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")


class TomlFile:
    """A TOML file of a project. ``text``: what it holds; ``data``: its tables."""

    def __init__(self, folder: ProjectFolder, path: str) -> None:
        """Read it; InputError as :meth:`ProjectFolder.text`, and where it is no TOML."""
        self.path = path
        self.folder = folder
        self.text = folder.text(path, most=MAX_BYTES)
        self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        self._headers: dict[str, list[int]] = {}
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except RecursionError:
            raise InputError(
                "this is nested too deeply", folder.shown(path), remedy="check that it is the right file"
            ) from None
        except ValueError as failure:
            said = str(failure)
            place = _PLACE.search(said)
            line, column = (int(place[1]), int(place[2])) if place and place[1] else self._end()
            where = Position(folder.shown(path), line, column)
            raise InputError(f"not valid TOML: {_PLACE.sub('', said)}", where, "a file in TOML") from None

    def header(self, table: str, number: int = 0) -> Position:
        """The header of a table, or the ``number``-th of an array of tables; the file's start where it has none."""
        if table not in self._headers:
            words = r"\s*\.\s*".join(rf"[\"']?{re.escape(word)}[\"']?" for word in table.split("."))
            found = re.finditer(rf"(?m)^[ \t]*(\[\[?[ \t]*{words}[ \t]*\]\]?)", self.text)
            self._headers[table] = [match.start(1) for match in found]
        starts = self._headers[table]
        return self._position(starts[min(number, len(starts) - 1)] if starts else 0)

    def key(self, table: str, key: str, value: str = "") -> Position:
        """A key of a table, or the text ``value`` behind it; the nearest that is found, from the header on."""
        at = self._offset(self.header(table))
        name = re.compile(rf"(?m)^[ \t]*([\"']?{re.escape(key)}[\"']?)\s*=")
        match = name.search(self.text, at)
        at = match.start(1) if match else at
        if value:
            quoted = [self.text.find(f"{mark}{value}{mark}", at) for mark in "\"'"]
            at = min((place for place in quoted if place >= 0), default=at)
        return self._position(at)

    def shown(self, where: Position) -> Position:
        """A place of this file, as messages show it."""
        return self.folder.at(where)

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._lines, offset)
        return Position(self.path, line, offset - self._lines[line - 1] + 1)

    def _offset(self, where: Position) -> int:
        return self._lines[where.line - 1] + where.column - 1

    def _end(self) -> tuple[int, int]:
        return self.text.count("\n") + 1, len(self.text) - self.text.rfind("\n")


class Reader:
    """Values of tables, each of the type that it must have; what is not is collected in ``problems``."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.problems = Problems()

    def text(self, table: Any, key: str, where: Position, needed: bool = False) -> str:
        """A text on one line; empty where there is none."""
        value = table.get(key, None if needed else "")
        if isinstance(value, str) and value.isprintable():
            return value
        said = f"{key} is missing" if value is None else f"{key} is not text on one line"
        self.wrong(said, where, f'a text such as {key} = "…"')
        return ""

    def texts(self, table: Any, key: str, where: Position) -> list[str]:
        """A list of texts."""
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(each, str) and each.isprintable() for each in value):
            return value
        self.wrong(f"{key} is not a list of strings", where, f'a list such as {key} = ["…"]')
        return []

    def table(self, table: Any, key: str, where: Position) -> dict[str, Any]:
        """A table; empty where there is none."""
        value = table.get(key, {})
        if isinstance(value, dict):
            return value
        self.wrong(f"{key} is not a table", where, f"a table, as below [{key}]")
        return {}

    def tables(self, table: Any, key: str, where: Position) -> list[dict[str, Any]]:
        """A list of tables."""
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return value
        self.wrong(f"{key} is not a list of tables", where, f"tables, as below [[{key}]]")
        return []

    def wrong(self, message: str, where: Position, expected: str = "", remedy: str = "") -> None:
        """Add an error at a place of the file."""
        self.problems.add(message, self.file.shown(where), expected, remedy)


T = TypeVar("T")


class Wrong(Protocol):
    """Takes one more mistake of a value, whose place it knows."""

    def __call__(self, message: str, expected: str = "", remedy: str = "") -> None: ...


class YamlFile:
    """A YAML file of a project. ``problems``: what is wrong with it."""

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
