"""A page of what `import hpcgen` offers: each function with its signature, each class, each error."""

from __future__ import annotations

import inspect
import re

from writing import cell, code, prose, table

import hpcgen

_QUALIFIED = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")
"""Modules before the name of a class: readers know it by the name alone."""


def pages() -> dict[str, str]:
    """reference/python.md."""
    named = [(name, getattr(hpcgen, name)) for name in sorted(hpcgen.__all__)]
    functions = [
        f"### {name}\n\n{_signature(name, each)}\n\n{_said(each)}" for name, each in named if inspect.isfunction(each)
    ]
    classes = [(name, each) for name, each in named if inspect.isclass(each)]
    errors = [[code(name), cell(_first(each))] for name, each in classes if issubclass(each, Exception)]
    records = [[code(name), cell(_first(each))] for name, each in classes if not issubclass(each, Exception)]
    parts = [
        "# Python: functions, records, errors\n\nExamples are on [the page of the interface](../api.md).\n",
        "## Functions\n",
        *functions,
        f"## Records\n\n{table(['class', 'what it is'], records)}",
        f"## Errors\n\n{table(['class', 'when'], errors)}",
    ]
    return {"reference/python.md": "\n".join(parts)}


def _signature(name: str, function: object) -> str:
    """As one would write it, a parameter on each line where it is long."""
    shown = _QUALIFIED.sub("", f"{name}{inspect.signature(function)}").replace("'", "")  # type: ignore[arg-type]
    if len(shown) > 90:
        given = inspect.signature(function)  # type: ignore[arg-type]
        lines = [_QUALIFIED.sub("", str(each)).replace("'", "") for each in given.parameters.values()]
        after = _QUALIFIED.sub("", str(given.return_annotation)).replace("'", "")
        star = next((i for i, each in enumerate(given.parameters.values()) if each.kind is each.KEYWORD_ONLY), None)
        if star is not None:
            lines.insert(star, "*")
        shown = f"{name}(\n    " + ",\n    ".join(lines) + f",\n) -> {after}"
    return f"```python\n{shown}\n```"


def _said(function: object) -> str:
    """The docstring; its sections as lists."""
    lines = prose(inspect.getdoc(function) or "")
    lines = re.sub(r"(?m)^(\w+)\n-{3,}$", r"**\1**\n", lines)
    return re.sub(r"(?m)^([A-Za-z_]+(?:, [A-Za-z_]+)*): ", r"- `\1`: ", lines) + "\n"


def _first(each: type) -> str:
    return prose(inspect.getdoc(each) or "").partition("\n\n")[0]
