"""Whether a profile can hold a fact: the type of a field by its path."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
from msgspec import inspect as shapes

from hpcgen.core.config.diagnostics import wrong_value
from hpcgen.core.config.type_words import bare, only_optional
from hpcgen.core.model.site import Site


def refusal(path: list[str], value: Any) -> str | None:
    """Why a profile cannot hold this value at this path; None if it can."""
    kind: Any = Site
    for step in path:
        kind = _below(kind, step)
        if kind is None:
            return "a profile has no such field"
    wrong = wrong_value(value, kind, ".".join(path))
    return f"a profile cannot hold {str(value)[:80]!r}: {wrong[0].message}" if wrong else None


def _below(kind: Any, step: str) -> Any:
    """The type of a field, or of a mapping's values if the key is right."""
    shape: Any = bare(shapes.type_info(kind))
    if isinstance(shape, shapes.UnionType):
        shape = bare(only_optional(shape) or shape)
    if isinstance(shape, shapes.StructType):
        return get_type_hints(shape.cls, include_extras=True).get(step)
    if isinstance(shape, shapes.DictType):
        keys, values = _arguments(kind)
        try:
            msgspec.convert(step, keys)
        except msgspec.ValidationError:
            return None
        return values
    return None


def _arguments(kind: Any) -> tuple[Any, Any]:
    """Key and value of a mapping's type, which may be one that can be absent."""
    if getattr(kind, "__origin__", None) is dict:
        keys, values = kind.__args__
        return keys, values
    for part in getattr(kind, "__args__", ()):
        if getattr(part, "__origin__", None) is dict:
            return _arguments(part)
    return str, Any
