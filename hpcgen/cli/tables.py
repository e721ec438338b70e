"""Tables in aligned columns; on a terminal that is too narrow for them, cells go on in the lines below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TextIO

import click

from hpcgen.cli.terminal import columns, fitted, is_coloured

_GAP = "  "
_NARROW = 12
"""Letters that a column keeps at least, where its cells have several words."""


def word(value: object) -> str:
    """What a cell shows of a value; a dash for none."""
    return "-" if value is None or value == "" else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO, spare: int = 0) -> str:
    """The table as text. Off a terminal no cell is broken, so that lines can be searched.

    On a terminal that is too narrow even for the longest words, each row is a paragraph.

    ``spare``: how many of the last columns are left out where cells would have to be broken for them.
    """
    width = columns(out)
    natural = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    if spare and width is not None and sum(natural) + len(_GAP) * (len(natural) - 1) > width:
        return table(head[:-spare], [row[:-spare] for row in rows], out)
    widths = natural if width is None else _widths(head, rows, natural, width)
    if widths is None:
        assert width is not None
        return "\n".join(fitted(_paragraph(head, row), width) for row in rows)
    lines = [line for row in [head, *rows] for line in _lines(row, widths)]
    if is_coloured(out):
        number = len(_lines(head, widths))
        lines[:number] = [click.style(line, bold=True) for line in lines[:number]]
    return "\n".join(lines)


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]], natural: Sequence[int], width: int) -> list[int] | None:
    """The widest columns narrowed until all fit, none below its longest word; None where that is not enough."""
    least = [
        max([_NARROW if any(" " in row[i] for row in rows) else 0, *(_longest(row[i]) for row in [head, *rows])])
        for i in range(len(head))
    ]
    widths = list(natural)
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while over > 0:
        room = {i: widths[i] for i in range(len(widths)) if widths[i] > least[i]}
        if not room:
            return None
        widest = max(room, key=lambda i: room[i])
        widths[widest] -= 1
        over -= 1
    return widths


def _longest(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        _GAP.join(map(str.ljust, line, widths)).rstrip()
        for line in zip_longest(*map(_wrapped, row, widths), fillvalue="")
    ]


def _wrapped(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    import textwrap

    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)


def _paragraph(head: Sequence[str], row: Sequence[str]) -> str:
    told = [f"{_GAP}{name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell not in ("", "-")]
    return "\n".join([row[0], *told])
