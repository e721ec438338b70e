"""A settings file in Python, read as data: what is written out is taken, what is computed is not."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from hpcgen.core.errors import InputError, Position
from hpcgen.machine.site_sources.said import SourceFacts, Step

VARIABLE = "site_configuration"
_DEEPEST = 60
MAX_BYTES = 512 * 1024
"""Python needs some 500 times as much memory for what it reads; settings have some hundred kilobytes at most."""


class Literal(SourceFacts):
    """The value of an assignment. ``computed``: places of what would have to be run to be known."""

    computed: list[str]


def read_literal(text: str, name: str) -> Literal | None:
    """What a file assigns to ``site_configuration``; None where that is no mapping that is written out.

    Nothing of the file is run. Values that are computed are left out, and named.

    InputError: it is no Python, is nested too deeply, or assigns nothing to that name.
    """
    if len(text) > MAX_BYTES:
        remedy = "check that it is the right file, or write what it gives as JSON or YAML"
        raise InputError("the file is too large", name, f"at most {MAX_BYTES} bytes of Python", remedy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as failure:
        where = Position(name, failure.lineno or 1, failure.offset or 1)
        raise InputError(f"this is not valid Python: {failure.msg}", where, "a settings file of ReFrame's") from None
    except (ValueError, RecursionError, MemoryError) as failure:
        raise InputError(
            f"this cannot be read as Python: {str(failure)[:80] or 'it is nested too deeply'}",
            name,
            remedy="check that it is the right file",
        ) from None
    values = [
        statement.value
        for statement in tree.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        and statement.value is not None
        and any(
            isinstance(target, ast.Name) and target.id == VARIABLE
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        )
    ]
    if not values:
        remedy = "name ReFrame's settings file, not a file of checks"
        raise InputError(f"nothing is assigned to {VARIABLE}", name, f"{VARIABLE} = {{…}}", remedy)
    reader = _Reader(name)
    data = reader.value(values[-1], ())
    if not isinstance(data, dict):
        return None
    lines = reader.lines
    said = Literal(data, name, lambda path: _line(lines, path))
    said.computed = reader.computed
    return said


def _line(lines: dict[tuple[Step, ...], int], path: tuple[Step, ...]) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Computed:
    """Stands for what is not written out."""


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[tuple[Step, ...], int] = {}
        self.computed: list[str] = []

    def value(self, node: ast.expr, path: tuple[Step, ...]) -> Any:
        if len(path) > _DEEPEST:
            raise InputError("this is nested too deeply", Position(self.name, node.lineno, 1))
        self.lines.setdefault(path, node.lineno)
        if isinstance(node, ast.Dict):
            return self._mapping(node, path)
        if isinstance(node, (ast.List, ast.Tuple)):
            values = (self.value(each, (*path, number)) for number, each in enumerate(node.elts))
            return [None if isinstance(value, _Computed) else value for value in values]
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
            return node.value
        self.computed.append(f"{self.name}:{node.lineno} ({'.'.join(map(str, path)) or 'the whole'})")
        return _Computed()

    def _mapping(self, node: ast.Dict, path: tuple[Step, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, each in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                self.computed.append(f"{self.name}:{each.lineno} ({'.'.join(map(str, path)) or 'the whole'})")
                continue
            # The key's line, as in YAML.
            below = (*path, key.value)
            self.lines[below] = key.lineno
            value = self.value(each, below)
            if not isinstance(value, _Computed):
                found[key.value] = value
        return found
