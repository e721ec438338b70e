"""TOML files, and where in their text something stands, which the standard library's reader does not tell."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder

_PLACE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")


class TomlFile:
    """A TOML file of a project.

    Attributes
    ----------
    data: its tables.
    """

    def __init__(self, folder: ProjectFolder, path: str) -> None:
        """Read it; InputError as :meth:`ProjectFolder.text`, and where it is no TOML."""
        self.path = path
        self.folder = folder
        self._text = folder.text(path, most=MAX_BYTES)
        self._lines = [0, *(match.end() for match in re.finditer("\n", self._text))]
        self._headers: dict[str, list[int]] = {}
        try:
            self.data: dict[str, Any] = tomllib.loads(self._text)
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
            found = re.finditer(rf"(?m)^[ \t]*(\[\[?[ \t]*{words}[ \t]*\]\]?)", self._text)
            self._headers[table] = [match.start(1) for match in found]
        starts = self._headers[table]
        return self._position(starts[min(number, len(starts) - 1)] if starts else 0)

    def key(self, table: str, key: str, value: str = "") -> Position:
        """A key of a table, or the text ``value`` behind it; the nearest that is found, from the header on."""
        at = self._offset(self.header(table))
        name = re.compile(rf"(?m)^[ \t]*([\"']?{re.escape(key)}[\"']?)\s*=")
        match = name.search(self._text, at)
        at = match.start(1) if match else at
        if value:
            quoted = [self._text.find(f"{mark}{value}{mark}", at) for mark in "\"'"]
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
        return self._text.count("\n") + 1, len(self._text) - self._text.rfind("\n")


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
        said = f"{key} is missing" if value is None else f"{key} is no text on one line"
        self.wrong(said, where, f'a text such as {key} = "…"')
        return ""

    def texts(self, table: Any, key: str, where: Position) -> list[str]:
        """A list of texts."""
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(each, str) and each.isprintable() for each in value):
            return value
        self.wrong(f"{key} is no list of texts", where, f'a list such as {key} = ["…"]')
        return []

    def table(self, table: Any, key: str, where: Position) -> dict[str, Any]:
        """A table; empty where there is none."""
        value = table.get(key, {})
        if isinstance(value, dict):
            return value
        self.wrong(f"{key} is no table", where, f"a table, as below [{key}]")
        return {}

    def tables(self, table: Any, key: str, where: Position) -> list[dict[str, Any]]:
        """A list of tables."""
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return value
        self.wrong(f"{key} is no list of tables", where, f"tables, as below [[{key}]]")
        return []

    def wrong(self, message: str, where: Position, expected: str = "", remedy: str = "") -> None:
        """Add an error at a place of the file."""
        self.problems.add(message, self.file.shown(where), expected, remedy)
