"""The few pieces of Markdown that all generated pages consist of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """A text as it stands in a table: on one line, its bars and angle brackets not read as anything else."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """A text as code within a line; empty stays empty."""
    return f"`{' '.join(text.split())}`".replace("|", "\\|") if text else ""


def prose(text: str) -> str:
    """A docstring's text: names in double backticks become code."""
    text = re.sub(r":[a-z]+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    # Python's keywords have an underscore where they are names of fields.
    return re.sub(r"`([a-z]+)_`", r"`\1`", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
