"""Patterns of fields: what ends with a line break is never what they describe."""

from __future__ import annotations

import importlib
import pkgutil
import re
import typing

import msgspec
import pytest

import hpcgen.core.model
from hpcgen.images import recorded


def of_several_lines(meta: msgspec.Meta) -> bool:
    """Whether a text may have several lines, and end with a break as a block of YAML does."""
    example = str((meta.examples or [""])[0])
    return re.search(meta.pattern or "", f"{example}\n{example}") is not None


FOLDER = hpcgen.core.model.__path__
MODULES = [importlib.import_module(f"hpcgen.core.model.{each.name}") for each in pkgutil.iter_modules(FOLDER)]
PATTERNS = sorted(
    {
        (meta.pattern, (meta.examples or [""])[0])
        for module in [*MODULES, recorded]
        for value in vars(module).values()
        if typing.get_origin(value) is typing.Annotated
        for meta in value.__metadata__
        if isinstance(meta, msgspec.Meta) and meta.pattern is not None and not of_several_lines(meta)
    }
)


@pytest.mark.parametrize(("pattern", "example"), PATTERNS)
def test_a_line_break_at_the_end_is_no_part_of_a_value(pattern: str, example: str) -> None:
    assert re.search(pattern, example)
    assert not re.search(pattern, f"{example}\n")
