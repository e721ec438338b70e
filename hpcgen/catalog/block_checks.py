"""What can be said of a block's source and class without a plan."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpcgen.blocks.base import Block
from hpcgen.blocks.requirements import version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.errors import HpcgenError, Position, Problem, did_you_mean, nearest


def source_problems(path: Path, shown: str, families: Iterable[str]) -> Iterator[Problem]:
    """Steps that are made and not yielded, and packages that lack one of the ``families`` (``apt``, ``dnf``)."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) in ("run", "Run"):
            place = Position(shown, node.lineno, node.col_offset + 1)
            yield Problem("this step is made and not yielded: nothing runs it", place, remedy="write yield before it")
        if isinstance(node, ast.Call) and _called(node) == "Packages":
            managers = {manager for keyword in node.keywords for manager in _keys(keyword.value)}
            missing = sorted(set(families) - managers)
            if managers and missing:
                place = Position(shown, node.lineno, node.col_offset + 1)
                given = ", ".join(sorted(managers))
                message = f"packages for {given} alone: on a distribution that has {missing[0]} there are none"
                yield Problem(message, place, remedy=f'add "{missing[0]}": [...], empty if it needs none there')


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _keys(value: ast.expr) -> list[str]:
    keys = value.keys if isinstance(value, ast.Dict) else []
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def class_problems(catalog: Catalog, block: type[Block], shown: str) -> Iterator[Problem]:
    """Methods that no block has, and needs that nothing provides."""
    known = [name for name in vars(Block) if not name.startswith("_")]
    for name, value in vars(block).items():
        function = getattr(value, "__func__", value)
        code = getattr(function, "__code__", None)
        inherited = any(name in vars(base) for base in block.__mro__[1:])
        if code is not None and not name.startswith("_") and not inherited and (meant := nearest(name, known)):
            message = f"a block has no method {name}(): nothing calls it"
            remedy = f"{meant} begin the name of a method of your own with _"
            yield Problem(message, Position(shown, code.co_firstlineno, 1), remedy=remedy)
    if not (block.__doc__ or "").strip() or block.__doc__ == Block.__doc__:
        yield Problem(f"{block.__name__} has no docstring", shown, "the software, and Source: with its home page")
    if not catalog.release_documents(block.name):
        yield Problem(f"{block.name} has no release table", shown, f"building_blocks/{block.name}.yaml")
    names = [*catalog.names("block"), *catalog.virtuals]
    for need in block.needs:
        if need.name not in names:
            yield Problem(f"it needs {need.name!r}, which is no block", shown, remedy=did_you_mean(need.name, names))
        try:
            version_range(need.versions or ">=0")
        except HpcgenError as error:
            yield from (problem.at(f"{shown}: need({need.name!r})") for problem in error.problems)
    for virtual in block.provides:
        if block.name not in catalog.virtuals.get(virtual, ()):
            message = f"it provides {virtual}, and virtuals.yaml does not list it"
            yield Problem(message, shown, remedy=f"add {block.name} to {virtual} in building_blocks/virtuals.yaml")
