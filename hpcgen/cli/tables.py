"""Tables: rich on a terminal, plain aligned columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO


def word(value: object) -> str:
    """What a cell shows of a value; a dash for none."""
    return "-" if value is None or value == "" else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO) -> str:
    """The table as text. Off a terminal the last column is not wrapped, so that lines can be searched."""
    if out.isatty():
        import io

        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(*head, header_style="bold", show_lines=False)
        for row in rows:
            drawn.add_row(*(Text(cell) for cell in row))
        buffer = io.StringIO()
        console = Console(file=buffer, force_terminal=True, width=Console().width)
        console.print(drawn)
        return buffer.getvalue().rstrip("\n")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head) - 1)]
    lines = []
    for row in [head, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)
