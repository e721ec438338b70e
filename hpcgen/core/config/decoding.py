"""Plain data into typed records, and the JSON Schemas of their types.

:func:`convert` is a thin shell around :func:`msgspec.convert`. That stops at the first mistake and knows no positions,
so when it fails, :mod:`hpcgen.core.config.diagnostics` looks at the data once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError

T = TypeVar("T")


def convert(doc: Document, type_: type[T], at: Sequence[str | int] = ()) -> T:
    """The part of ``doc`` at the path ``at``, as a ``type_``.

    Text becomes a number or a boolean where the type requires one, so nobody has to quote a version
    or leave quotes off a count.

    InputError: with all that is wrong, each with file, line and column.
    """
    path = tuple(at)
    value: Any = doc.data
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            from hpcgen.core.config.diagnostics import inside

            where = doc.position(path[:depth])
            raise InputError(
                f"`{step}` is missing{inside(path[:depth])}",
                where,
                remedy="add it; `hpcgen schema` lists the fields of such a file",
            ) from None
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError as failure:
        from hpcgen.core.config.diagnostics import diagnose

        raise InputError(diagnose(doc, value, type_, path, str(failure))) from failure


def record_from(data: Any, type_: type[T], strict: bool = True) -> T:
    """Data that a program wrote as JSON or YAML, such as a kit's plan, as a record.

    ``strict``: text does not stand for a number. msgspec.ValidationError: with what is wrong in plain words, each
    mistake with the path of its field.
    """
    try:
        return msgspec.convert(data, type_, strict=strict)
    except msgspec.ValidationError as failure:
        from hpcgen.core.config.diagnostics import in_words

        raise msgspec.ValidationError(in_words(data, type_, str(failure), strict)) from failure


def schema(type_: type[Any]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the YAML files that become a ``type_``, for editors and sites.

    Text may be written as a number there (``version: 12``), since :func:`convert` takes it so.
    """
    described = _numbers_may_be_text(msgspec.json.schema(type_))
    title = getattr(type_, "__name__", str(type_))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **described}


def _numbers_may_be_text(node: Any) -> Any:
    from inspect import cleandoc

    if isinstance(node, list):
        return [_numbers_may_be_text(item) for item in node]
    if not isinstance(node, dict):
        return node
    wider = {
        # A default or an example is a value, not a schema; keys of a mapping are always text.
        key: value if key in ("default", "examples", "enum", "const", "propertyNames") else _numbers_may_be_text(value)
        for key, value in node.items()
        # msgspec 0.23 lists a mapping's keys of a Literal, 0.22 does not: the schema is the same with either.
        if not (key == "propertyNames" and "enum" in value)
    }
    if wider.get("type") == "string":
        wider["type"] = ["string", "number"]
    if isinstance(text := wider.get("description"), str):
        # A docstring, which Python has with its indentation up to 3.12 and without from 3.13 on.
        wider["description"] = cleandoc(text)
    return wider
