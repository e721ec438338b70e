"""Descriptions of types in plain words, for messages about wrong values and for lists of options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import inspect as shapes

from hpcgen.core.errors import nearest
from hpcgen.core.secret_rules import without_secrets

_WORDS_FOR_TRUE = ("yes", "y", "on", "enabled")
_WORDS_FOR_FALSE = ("no", "n", "off", "disabled")


def type_text(annotation: Any) -> str:
    """The description of an annotation, in the words of messages."""
    kind = shapes.type_info(annotation)
    plain = bare(kind)
    items = plain.item_type if isinstance(plain, shapes.ListType) else None
    return f"a list, each {with_example(items)}" if items is not None else with_example(kind)


def bare(kind: shapes.Type) -> shapes.Type:
    """The kind without the description around it."""
    while isinstance(kind, shapes.Metadata):
        kind = kind.type
    return kind


def _description(kind: shapes.Type) -> str:
    extra = (kind.extra_json_schema or {}) if isinstance(kind, shapes.Metadata) else {}
    return str(extra.get("description", "")).rstrip(".")


def _example(kind: shapes.Type) -> str:
    extra = (kind.extra_json_schema or {}) if isinstance(kind, shapes.Metadata) else {}
    return str(next(iter(extra.get("examples", ())), ""))


def only_optional(union: shapes.UnionType) -> Any:
    """The one member beside null, if there is just one."""
    rest = [member for member in union.types if not isinstance(bare(member), shapes.NoneType)]
    return rest[0] if len(rest) == 1 else None


def shape(kind: shapes.Type) -> str:
    if isinstance(kind, (shapes.StructType, shapes.DictType)):
        return "mapping"
    if isinstance(kind, (shapes.ListType, shapes.VarTupleType, shapes.TupleType, shapes.SetType, shapes.FrozenSetType)):
        return "list"
    return "null" if isinstance(kind, shapes.NoneType) else "scalar"


def _choices(kind: shapes.Type) -> list[str]:
    if isinstance(kind, shapes.LiteralType):
        return [str(value) for value in kind.values]
    if isinstance(kind, shapes.EnumType):
        return [str(member.value) for member in kind.cls]
    return []


def one_of(words: Sequence[str]) -> str:
    return f"one of {', '.join(words)}" if len(words) > 1 else f"`{''.join(words)}`"


def extent(least: int | None, most: int | None) -> str:
    if least and most is not None:
        return f"{least}" if least == most else f"{least} to {most}"
    return f"at most {most}" if most is not None else f"at least {least}"


def _limits(kind: Any) -> str:
    parts = []
    if kind.ge is not None and kind.le is not None:
        parts.append(f"from {kind.ge} to {kind.le}")
    else:
        words = (("of at least", kind.ge), ("more than", kind.gt), ("at most", kind.le), ("less than", kind.lt))
        parts += [f"{word} {limit:g}" for word, limit in words if limit is not None]
    if kind.multiple_of is not None:
        parts.append(f"that is a multiple of {kind.multiple_of}")
    return f" {' and '.join(parts)}" if parts else ""


def noun(kind: shapes.Type) -> str:
    """The description of this kind of value."""
    plain = bare(kind)
    if isinstance(plain, shapes.IntType):
        return f"a whole number{_limits(plain)}"
    if isinstance(plain, shapes.FloatType):
        return f"a number{_limits(plain)}"
    if isinstance(plain, shapes.BoolType):
        return "true or false"
    if isinstance(plain, shapes.StrType):
        return _noun_of_text(plain, _description(kind))
    if isinstance(plain, shapes.NoneType):
        return "empty"
    if isinstance(plain, shapes.DateType):
        return "a date such as 2026-01-31"
    if isinstance(plain, shapes.UnionType):
        words = (noun(m) for m in plain.types if not isinstance(bare(m), shapes.NoneType))
        return " or ".join(words)
    if isinstance(plain, shapes.TupleType):
        return f"a list of {len(plain.item_types)}"
    if _choices(plain):
        return one_of(_choices(plain))
    return {"mapping": "a mapping, that is, indented `key: value` lines", "list": "a list"}.get(
        shape(plain), "another kind of value"
    )


def with_example(kind: shapes.Type) -> str:
    """The same, and an example of text of a certain form."""
    plain = bare(kind)
    if isinstance(plain, shapes.UnionType) and only_optional(plain) is not None:
        return with_example(only_optional(plain))
    return f"{noun(kind)}, such as {_example(kind)}" if _example(kind) else noun(kind)


def _noun_of_text(kind: shapes.StrType, description: str) -> str:
    if kind.pattern is not None:
        # A regular expression is not plain words: the description is there to say what it means.
        return description or f"a string that matches {_readable(kind.pattern)}"
    if kind.min_length == 1 and kind.max_length is None:
        return "a string that is not empty"
    if kind.min_length or kind.max_length is not None:
        return f"a string of {extent(kind.min_length, kind.max_length)} characters"
    return "a string"


def _readable(pattern: str) -> str:
    """The pattern without the guard that Python's ``$`` needs (see :mod:`hpcgen.core.support.quoting`)."""
    return pattern.removesuffix(r"(?!\n)")


def detail(kind: shapes.Type) -> str:
    """A further help to write the value: an example, or its purpose."""
    plain = bare(kind)
    if isinstance(plain, shapes.UnionType):
        inner = only_optional(plain)
        return detail(inner) if inner is not None else _description(kind)
    if isinstance(plain, shapes.StructType):
        return f"the keys {', '.join(field.encode_name for field in plain.fields)}"
    if isinstance(plain, shapes.StrType) and plain.pattern is not None:
        return f"such as {_example(kind)}" if _example(kind) else ""
    description = _description(kind)
    return description if description != noun(kind) else ""


def hint(kind: shapes.Type, value: Any) -> str:
    """The remedy for ``value`` where a ``kind`` is expected."""
    plain = bare(kind)
    if isinstance(plain, shapes.UnionType) and only_optional(plain) is not None:
        plain = bare(only_optional(plain))
    if value is None:
        return "give it a value, or remove the line"
    if isinstance(value, bool):
        word = str(value).lower()
        return f'write it in quotes: "{word}"' if isinstance(plain, shapes.StrType) else ""
    if not isinstance(value, str):
        return ""
    if _choices(plain):
        return nearest(value, _choices(plain))
    if isinstance(plain, shapes.BoolType):
        if value.lower() in _WORDS_FOR_TRUE:
            return "write true"
        return "write false" if value.lower() in _WORDS_FOR_FALSE else ""
    if isinstance(plain, (shapes.IntType, shapes.FloatType)) and re.search(r"\d\s*[^\d\s.+-]|\d[ ,_]\d", value):
        return "write only the number, without a unit or separators"
    if shape(plain) == "list":
        return f"write it as a list: [{value}]"
    return ""


def shown(value: Any) -> str:
    """A value for people, cut where it is long, and without its secrets."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    text = without_secrets(str(value))
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return f"'{text}'" if text.isprintable() else repr(text)
