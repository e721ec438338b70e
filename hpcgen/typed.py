"""Plain data into typed records, with every mistake at its place.

:func:`convert` is a thin shell around :func:`msgspec.convert`. That stops at the
first mistake and knows no positions, so when it fails, the data is walked along
the type once more, and all mistakes are collected in words for people.

The walk asks msgspec itself about each single value, so the two cannot disagree on
what is allowed; what it does not know is reported in msgspec's own words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import inspect as shapes

from hpcgen.errors import InputError, Problem, did_you_mean
from hpcgen.yamlfile import Document

T = TypeVar("T")
Path = tuple[str | int, ...]

_WORDS_FOR_TRUE = ("yes", "y", "on", "enabled")
_WORDS_FOR_FALSE = ("no", "n", "off", "disabled")


def convert(doc: Document, type_: type[T], at: Sequence[str | int] = ()) -> T:
    """The part of ``doc`` at the path ``at``, as a ``type_``.

    Text becomes a number or a boolean where the type wants one, so nobody has to quote a version
    or leave quotes off a count.

    Raises
    ------
    InputError: with all that is wrong, each with file, line and column.
    """
    path = tuple(at)
    value: Any = doc.data
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            where = doc.position(path[:depth])
            raise InputError(Problem(f"`{step}` is missing{_inside(path[:depth])}", where)) from None
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError as failure:
        walk = _Walk(doc)
        walk.check(value, shapes.type_info(type_), path)
        if not walk.problems:
            # Never lose an error: msgspec's own words, as near as its path leads.
            where = doc.position(path + _path_in(str(failure)))
            walk.problems.append(Problem(_without_path(str(failure)), where))
        raise InputError(sorted(walk.problems, key=_by_place)) from failure


def schema(type_: type[Any]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the YAML files that become a ``type_``, for editors and sites.

    Text may be written as a number there (``version: 12``), since :func:`convert` takes it so.
    """
    described = _numbers_may_be_text(msgspec.json.schema(type_))
    title = getattr(type_, "__name__", str(type_))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **described}


def _numbers_may_be_text(node: Any) -> Any:
    if isinstance(node, list):
        return [_numbers_may_be_text(item) for item in node]
    if not isinstance(node, dict):
        return node
    wider = {
        # A default or an example is a value, not a schema; keys of a mapping are always text.
        key: value if key in ("default", "examples", "enum", "const", "propertyNames") else _numbers_may_be_text(value)
        for key, value in node.items()
    }
    if wider.get("type") == "string":
        wider["type"] = ["string", "number"]
    return wider


class _Walk:
    """Collects what is wrong with one value and everything in it."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.problems: list[Problem] = []

    def check(self, value: Any, kind: shapes.Type, path: Path) -> None:
        """Report all problems of ``value``, which stands at ``path`` and should be a ``kind``."""
        plain = _bare(kind)
        if isinstance(plain, shapes.UnionType):
            self.check_union(value, plain, path)
        elif isinstance(plain, shapes.StructType):
            self.check_struct(value, plain, path)
        elif isinstance(plain, shapes.DictType):
            self.check_dict(value, plain, path)
        elif isinstance(plain, (shapes.ListType, shapes.VarTupleType, shapes.SetType, shapes.FrozenSetType)):
            self.check_list(value, plain, path)
        elif isinstance(plain, shapes.TupleType):
            self.check_tuple(value, plain, path)
        elif not _accepts(plain, value):
            self.add_wrong(value, kind, path)

    def check_union(self, value: Any, union: shapes.UnionType, path: Path) -> None:
        members = [_bare(member) for member in union.types]
        if value is None and any(isinstance(member, shapes.NoneType) for member in members):
            return
        alike = [m for m in union.types if _shape(_bare(m)) == _shape_of_value(value)]
        tagged = [m for m in map(_bare, alike) if isinstance(m, shapes.StructType) and m.tag_field is not None]
        if tagged and isinstance(value, dict):
            self.check_tagged(value, tagged, path)
        elif len(alike) == 1 or (value is not None and _only_optional(union)):
            self.check(value, alike[0] if len(alike) == 1 else _only_optional(union), path)
        elif not any(_accepts(_bare(member), value) for member in alike):
            self.add_wrong(value, union, path)

    def check_tagged(self, value: dict[str, Any], structs: list[shapes.StructType], path: Path) -> None:
        field = structs[0].tag_field or ""
        chosen = [struct for struct in structs if str(struct.tag) == str(value.get(field))]
        if chosen:
            self.check_struct(value, chosen[0], path)
            return
        tags = [str(struct.tag) for struct in structs]
        if field not in value:
            where = self.doc.position(path)
            self.add(f"`{field}` is missing{_inside(path)}", where, _choice(tags), f"add `{field}: …`")
        else:
            where = self.doc.position((*path, field))
            shown = _shown(value[field])
            self.add(f"`{field}` cannot be {shown}", where, _choice(tags), did_you_mean(str(value[field]), tags))

    def check_struct(self, value: Any, struct: shapes.StructType, path: Path) -> None:
        if not isinstance(value, dict):
            self.add_wrong(value, struct, path)
            return
        before = len(self.problems)
        fields = {field.encode_name: field for field in struct.fields}
        for name, item in value.items():
            if name in fields:
                self.check(item, fields[name].type, (*path, name))
            elif struct.forbid_unknown_fields and name != struct.tag_field:
                where = self.doc.position((*path, name), key=True)
                self.add(f"`{name}` is not known{_inside(path)}", where, "", did_you_mean(name, list(fields)))
        for name, field in fields.items():
            if field.required and name not in value:
                where = self.doc.position(path)
                self.add(f"`{name}` is missing{_inside(path)}", where, _noun(field.type), f"add `{name}: …`")
        if len(self.problems) == before:
            self.check_whole(value, struct, path)

    def check_whole(self, value: Any, struct: shapes.StructType, path: Path) -> None:
        """Each field is right by itself: let the record's own checks (``__post_init__``) speak."""
        try:
            msgspec.convert(value, struct.cls, strict=False)
        except msgspec.ValidationError as failure:
            where = self.doc.position(path + _path_in(str(failure)))
            self.add(_without_path(str(failure)), where)

    def check_dict(self, value: Any, kind: shapes.DictType, path: Path) -> None:
        if not isinstance(value, dict):
            self.add_wrong(value, kind, path)
            return
        self.check_length(value, kind, path)
        for name, item in value.items():
            if not _accepts(_bare(kind.key_type), name):
                where = self.doc.position((*path, name), key=True)
                message = f"`{name}` cannot be a key{_inside(path)}: it must be {_noun(kind.key_type)}"
                self.add(message, where, _detail(kind.key_type), _hint(kind.key_type, name))
            self.check(item, kind.value_type, (*path, name))

    def check_list(self, value: Any, kind: Any, path: Path) -> None:
        if not isinstance(value, list):
            self.add_wrong(value, kind, path)
            return
        self.check_length(value, kind, path)
        for index, item in enumerate(value):
            self.check(item, kind.item_type, (*path, index))

    def check_tuple(self, value: Any, kind: shapes.TupleType, path: Path) -> None:
        if not isinstance(value, list) or len(value) != len(kind.item_types):
            self.add_wrong(value, kind, path)
            return
        for index, (item, item_kind) in enumerate(zip(value, kind.item_types, strict=True)):
            self.check(item, item_kind, (*path, index))

    def check_length(self, value: Any, kind: Any, path: Path) -> None:
        least, most = kind.min_length or 0, kind.max_length
        if len(value) < least or (most is not None and len(value) > most):
            message = f"{_name(path)} must have {_range(least, most)} entries, not {len(value)}"
            self.add(message, self.doc.position(path))

    def add_wrong(self, value: Any, kind: shapes.Type, path: Path) -> None:
        message = f"{_name(path)} must be {_noun(kind)}, " + (
            "but is empty" if value is None else f"not {_shown(value)}"
        )
        self.add(message, self.doc.position(path), _detail(kind), _hint(kind, value))

    def add(self, message: str, where: Any, expected: str = "", remedy: str = "") -> None:
        self.problems.append(Problem(message, where, expected, remedy))


def _bare(kind: shapes.Type) -> shapes.Type:
    """The kind without the description around it."""
    while isinstance(kind, shapes.Metadata):
        kind = kind.type
    return kind


def _description(kind: shapes.Type) -> str:
    extra = (kind.extra_json_schema or {}) if isinstance(kind, shapes.Metadata) else {}
    return str(extra.get("description", "")).rstrip(".")


def _only_optional(union: shapes.UnionType) -> Any:
    """The one member beside null, if there is just one."""
    rest = [member for member in union.types if not isinstance(_bare(member), shapes.NoneType)]
    return rest[0] if len(rest) == 1 else None


def _shape(kind: shapes.Type) -> str:
    if isinstance(kind, (shapes.StructType, shapes.DictType)):
        return "mapping"
    if isinstance(kind, (shapes.ListType, shapes.VarTupleType, shapes.TupleType, shapes.SetType, shapes.FrozenSetType)):
        return "list"
    return "null" if isinstance(kind, shapes.NoneType) else "scalar"


def _shape_of_value(value: Any) -> str:
    if isinstance(value, dict):
        return "mapping"
    if isinstance(value, list):
        return "list"
    return "null" if value is None else "scalar"


def _python_type(kind: shapes.Type) -> Any:
    """The annotation that msgspec reads as this scalar kind; Any for one that is not known here."""
    if isinstance(kind, (shapes.IntType, shapes.FloatType)):
        limits: dict[str, Any] = {name: getattr(kind, name) for name in ("gt", "ge", "lt", "le", "multiple_of")}
        return Annotated[int if isinstance(kind, shapes.IntType) else float, msgspec.Meta(**limits)]
    if isinstance(kind, shapes.StrType):
        return Annotated[
            str, msgspec.Meta(pattern=kind.pattern, min_length=kind.min_length, max_length=kind.max_length)
        ]
    if isinstance(kind, shapes.BoolType):
        return bool
    if isinstance(kind, shapes.NoneType):
        return None
    if isinstance(kind, shapes.LiteralType):
        return Literal[kind.values]
    if isinstance(kind, (shapes.EnumType, shapes.CustomType)):
        return kind.cls
    if isinstance(kind, shapes.DateType):
        import datetime

        return datetime.date
    return Any


def _accepts(kind: shapes.Type, value: Any) -> bool:
    if _shape(kind) in ("mapping", "list"):
        return _shape(kind) == _shape_of_value(value)
    try:
        msgspec.convert(value, _python_type(kind), strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _choices(kind: shapes.Type) -> list[str]:
    if isinstance(kind, shapes.LiteralType):
        return [str(value) for value in kind.values]
    if isinstance(kind, shapes.EnumType):
        return [str(member.value) for member in kind.cls]
    return []


def _choice(words: Sequence[str]) -> str:
    return f"one of {', '.join(words)}" if len(words) > 1 else f"`{''.join(words)}`"


def _range(least: int | None, most: int | None) -> str:
    if least and most is not None:
        return f"{least}" if least == most else f"{least} to {most}"
    return f"at most {most}" if most is not None else f"at least {least}"


def _limits(kind: Any) -> str:
    parts = []
    if kind.ge is not None and kind.le is not None:
        parts.append(f"from {kind.ge} to {kind.le}")
    else:
        signs = (("≥", kind.ge), (">", kind.gt), ("≤", kind.le), ("<", kind.lt))
        parts += [f"{sign} {limit}" for sign, limit in signs if limit is not None]
    if kind.multiple_of is not None:
        parts.append(f"that is a multiple of {kind.multiple_of}")
    return f" {' and '.join(parts)}" if parts else ""


def _noun(kind: shapes.Type) -> str:
    """What a value of this kind is, in plain words."""
    plain = _bare(kind)
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
        words = (_noun(m) for m in plain.types if not isinstance(_bare(m), shapes.NoneType))
        return " or ".join(words)
    if isinstance(plain, shapes.TupleType):
        return f"a list of {len(plain.item_types)}"
    if _choices(plain):
        return _choice(_choices(plain))
    return {"mapping": "a mapping, that is, indented `key: value` lines", "list": "a list"}.get(
        _shape(plain), "another kind of value"
    )


def _noun_of_text(kind: shapes.StrType, description: str) -> str:
    if kind.pattern is not None:
        # A regular expression is not plain words: the description is there to say what it means.
        return description or f"text that matches {_readable(kind.pattern)}"
    if kind.min_length == 1 and kind.max_length is None:
        return "text, not empty"
    if kind.min_length or kind.max_length is not None:
        return f"text of {_range(kind.min_length, kind.max_length)} characters"
    return "text"


def _readable(pattern: str) -> str:
    """The pattern without the guard that Python's ``$`` needs (see :mod:`hpcgen.text`)."""
    return pattern.removesuffix(r"(?!\n)")


def _detail(kind: shapes.Type) -> str:
    """What else helps to write the value: what it is for, or the exact pattern."""
    plain = _bare(kind)
    if isinstance(plain, shapes.UnionType):
        inner = _only_optional(plain)
        return _detail(inner) if inner is not None else _description(kind)
    description = _description(kind)
    if isinstance(plain, shapes.StrType) and plain.pattern is not None:
        return f"text that matches {_readable(plain.pattern)}" if description else ""
    return description


def _hint(kind: shapes.Type, value: Any) -> str:
    """What to do about ``value`` where a ``kind`` belongs."""
    plain = _bare(kind)
    if isinstance(plain, shapes.UnionType) and _only_optional(plain) is not None:
        plain = _bare(_only_optional(plain))
    if value is None:
        return "give it a value, or remove the line"
    if isinstance(value, bool):
        word = str(value).lower()
        return f'write it in quotes: "{word}"' if isinstance(plain, shapes.StrType) else ""
    if not isinstance(value, str):
        return ""
    if _choices(plain):
        return did_you_mean(value, _choices(plain))
    if isinstance(plain, shapes.BoolType):
        if value.lower() in _WORDS_FOR_TRUE:
            return "write true"
        return "write false" if value.lower() in _WORDS_FOR_FALSE else ""
    if isinstance(plain, (shapes.IntType, shapes.FloatType)) and re.search(r"\d\s*[^\d\s.+-]|\d[ ,_]\d", value):
        return "write the number alone, without a unit or separators"
    if _shape(plain) == "list":
        return f"write it as a list: [{value}]"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if len(str(value)) <= 60 else f"{str(value)[:57]}..."
    return f"'{text}'" if text.isprintable() else repr(text)


def _name(path: Path) -> str:
    """How to call the value at ``path`` in a sentence; the position says the rest."""
    if not path:
        return "the file"
    tail = ""
    for step in reversed(path):
        if isinstance(step, str):
            return f"`{step}{tail}`"
        tail = f"[{step}]{tail}"
    return f"`{tail}`"


def _inside(path: Path) -> str:
    return f" in {_name(path)}" if path else ""


def _by_place(problem: Problem) -> Any:
    return (problem.where, problem.message)


_PATH_AT_END = re.compile(r" - at (?:`key` in )?`(\$[^`]*)`$")


def _without_path(message: str) -> str:
    return _PATH_AT_END.sub("", message)


def _path_in(message: str) -> Path:
    """The steps of the ``$.a.b[0]`` at the end of one of msgspec's messages, as far as they are exact."""
    found = _PATH_AT_END.search(message)
    steps: list[str | int] = []
    for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", found[1] if found else ""):
        if index == "...":
            # msgspec does not say which key of a mapping it means.
            break
        steps.append(name or int(index))
    return tuple(steps)
