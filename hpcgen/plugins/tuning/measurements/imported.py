"""What all imported tables share: cells by column with their line, names made of free text, all mistakes at once."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import InputError, Position
from hpcgen.core.support.hashing import read_plain

MAX_BYTES = 64 * 1024 * 1024
T = TypeVar("T", bound=msgspec.Struct)


class TableLine(dict[str, str]):
    """The cells of one line by the names of their columns; ``where`` it is."""

    def __init__(self, cells: dict[str, str], where: Position) -> None:
        super().__init__(cells)
        self.where = where


def read_text(path: Path) -> list[str]:
    """The lines of a table that another tool wrote.

    Raises
    ------
    InputError: it cannot be read, is too large or no text.
    """
    try:
        data = read_plain(path, MAX_BYTES)
    except OSError as failure:
        raise InputError(f"this file cannot be read: {failure.strerror}", str(path)) from failure
    if len(data) > MAX_BYTES:
        raise InputError(f"this file is larger than {MAX_BYTES // 2**20} MiB", str(path), remedy="split it")
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as failure:
        raise InputError("not valid UTF-8", str(path)) from failure


def lines_of(path: Path, required: set[str], what: str, separator: str) -> Iterator[TableLine]:
    """Each line below the one with the names of the columns.

    Raises
    ------
    InputError: a column is missing, or a line has another number of cells.
    """
    # Cells of tables separated by commas may be quoted, those of others have quotes of their own.
    lines = read_text(path)
    read = csv.reader(lines) if separator == "," else csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    columns = [each.strip() for each in next(read, [])]
    if missing := sorted(required - set(columns)):
        raise InputError(
            f"{what} has the columns {', '.join(missing)}; this file lacks them",
            Position(str(path), 1, 1),
            f"{separator.join(sorted(required))} in the first line",
        )
    for cells in read:
        if not cells:
            continue
        where = Position(str(path), read.line_num, 1)
        if len(cells) != len(columns):
            raise InputError(
                f"{len(cells)} cells on this line, and {len(columns)} columns above",
                where,
                remedy="quote cells that have a comma in them",
            )
        yield TableLine(dict(zip(columns, map(str.strip, cells), strict=True)), where)


def name_from(text: str) -> str:
    """A name of hpcgen's made of another tool's: lower case, other characters as ``-``, at most 64 of them."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64].rstrip("-._") or "unnamed"


def checked_row(data: dict[str, object], type_: type[T], where: Position) -> T:
    """A row made of cells; what is wrong is told with its line.

    Raises
    ------
    InputError: a cell is not what its field takes.
    """
    return convert(InMemory(data, f"{where.file}:{where.line}"), type_)
