"""What can be said of a block's source and class without a plan."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hpcgen.blocks.base import Block
from hpcgen.blocks.guarded import NOT_YIELDED
from hpcgen.blocks.requirements import version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, Position, Problem, did_you_mean, nearest


def source_problems(path: Path, shown: str) -> Iterator[Problem]:
    """Steps that are made and not yielded, also those of a method that yields them."""
    tree = ast.parse(path.read_text("utf-8"))
    yielding = {
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
        and any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(each))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            place, called = Position(shown, node.lineno, node.col_offset + 1), _called(node.value)
            if called in ("run", "Run"):
                yield Problem(f"this step {NOT_YIELDED}", place, remedy="write yield before it")
            elif called in yielding:
                message = f"the steps of {called}() are never yielded, so they never run"
                yield Problem(message, place, remedy="write yield from before it")


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


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
