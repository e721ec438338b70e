"""All mistakes of plain data that does not fit a type, each at its place and in words for people.

The data is walked along the type. The walk asks msgspec itself about each single value, so the two cannot disagree on
what is allowed; what it does not know is reported in msgspec's own words.
"""

from __future__ import annotations

import copy
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import inspect as shapes

from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.type_words import (
    bare,
    detail,
    extent,
    hint,
    noun,
    one_of,
    only_optional,
    shape,
    shown,
    with_example,
)
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Problem, did_you_mean
from hpcgen.core.support.units import counted

Path = tuple[str | int, ...]


def diagnose(doc: Document, value: Any, type_: type[Any], path: Path, said: str) -> list[Problem]:
    """The mistakes in a value at a path of a document, in the order of the file.

    ``said``: msgspec's own message, for what the walk does not find.
    """
    walk = _Walk(doc)
    walk.check(value, shapes.type_info(type_), path)
    if not walk.problems:
        # Never lose an error: msgspec's own words, as near as its path leads.
        where = doc.position(path + _path_in(said))
        walk.problems.append(Problem(_without_path(said), where))
    return sorted(walk.problems, key=lambda problem: (problem.where, problem.message))


def without_mistakes(doc: Document, type_: type[Any]) -> Document:
    """A document without the values that do not fit a type, or lack a field that they require, at the same places."""
    walk = _Walk(doc)
    walk.check(doc.data, shapes.type_info(type_), ())
    rest, data = copy.copy(doc), copy.deepcopy(doc.data)
    for path in sorted(set(walk.wrong), key=len, reverse=True):
        inner: Any = data
        for step in path[:-1]:
            inner = inner[step]
        # The places of what follows in a list must stay.
        if path and not isinstance(inner, list):
            del inner[path[-1]]
    rest.data = data
    return rest


def wrong_value(value: Any, annotation: Any, name: str) -> list[Problem]:
    """The mistakes in a value outside of files, such as a block's option; empty if it is right.

    ``name``: what messages call it.
    """
    walk = _Walk(InMemory({}, ""))
    walk.check(value, shapes.type_info(annotation), (name,))
    return [problem.at(None) for problem in walk.problems]


def in_words(value: Any, type_: type[Any], said: str, strict: bool = True) -> str:
    """The first mistakes in data that a program wrote, on one line, each with the path of its field.

    ``said``: msgspec's own message, for what the walk does not find. ``strict``: text does not stand for a number.
    """
    walk = _Walk(InMemory({}, ""), strict)
    walk.check(value, shapes.type_info(type_), ())
    told = [f"{each.where}: {each.message}".removeprefix(": ") for each in walk.problems]
    more = [counted(len(told) - _TOLD, "more mistake")] if len(told) > _TOLD else []
    return "; ".join([*told[:_TOLD], *more]) if told else said


_TOLD = 3


class _Walk:
    """Collects what is wrong with one value and everything in it.

    ``strict``: text does not stand for a number, as it does in YAML.
    """

    def __init__(self, doc: Document, strict: bool = False) -> None:
        self.doc = doc
        self.strict = strict
        self.problems: list[Problem] = []
        self.wrong: list[Path] = []

    def check(self, value: Any, kind: shapes.Type, path: Path) -> None:
        """Report all problems of ``value``, which stands at ``path`` and should be a ``kind``."""
        plain = bare(kind)
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
        elif not _accepts(plain, value, self.strict):
            self.add_wrong(value, kind, path)

    def check_union(self, value: Any, union: shapes.UnionType, path: Path) -> None:
        members = [bare(member) for member in union.types]
        if value is None and any(isinstance(member, shapes.NoneType) for member in members):
            return
        alike = [m for m in union.types if shape(bare(m)) == _shape_of_value(value)]
        tagged = [m for m in map(bare, alike) if isinstance(m, shapes.StructType) and m.tag_field is not None]
        if tagged and isinstance(value, dict):
            self.check_tagged(value, tagged, path)
        elif len(alike) == 1 or (value is not None and only_optional(union)):
            self.check(value, alike[0] if len(alike) == 1 else only_optional(union), path)
        elif not any(_accepts(bare(member), value, self.strict) for member in alike):
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
            self.add(f"`{field}` is missing{inside(path)}", where, one_of(tags), f"add `{field}: …`")
        else:
            where = self.doc.position((*path, field))
            self.add(
                f"`{field}` cannot be {shown(value[field])}", where, one_of(tags), did_you_mean(str(value[field]), tags)
            )

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
                self.wrong.append((*path, name))
                self.add(f"`{name}` is not known{inside(path)}", where, "", did_you_mean(name, list(fields)))
        for name, field in fields.items():
            if field.required and name not in value:
                self.wrong.append(path)
                where = self.doc.position(path)
                self.add(f"`{name}` is missing{inside(path)}", where, with_example(field.type), f"add `{name}: …`")
        if len(self.problems) == before:
            self.check_whole(value, struct, path)

    def check_whole(self, value: Any, struct: shapes.StructType, path: Path) -> None:
        """Each field is right by itself: let the record's own checks (``__post_init__``) speak."""
        try:
            msgspec.convert(value, struct.cls, strict=self.strict)
        except msgspec.ValidationError as failure:
            self.wrong.append(path)
            where = self.doc.position(path + _path_in(str(failure)))
            self.add(_without_path(str(failure)), where)

    def check_dict(self, value: Any, kind: shapes.DictType, path: Path) -> None:
        if not isinstance(value, dict):
            self.add_wrong(value, kind, path)
            return
        self.check_length(value, kind, path)
        for name, item in value.items():
            if not _accepts(bare(kind.key_type), name, self.strict):
                where = self.doc.position((*path, name), key=True)
                self.wrong.append((*path, name))
                message = f"`{name}` cannot be a key{inside(path)}: it must be {noun(kind.key_type)}"
                self.add(message, where, detail(kind.key_type), hint(kind.key_type, name))
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
            entries = "entry" if (most or least) == 1 else "entries"
            message = f"{_name(path)} must have {extent(least, most)} {entries}, not {len(value)}"
            remedy = "add the missing entries" if len(value) < least else "take some out"
            self.add(message, self.doc.position(path), remedy=remedy)

    def add_wrong(self, value: Any, kind: shapes.Type, path: Path) -> None:
        self.wrong.append(path)
        if value is None:
            message = f"{_name(path)} is empty; expected {noun(kind)}"
        else:
            message = f"{_name(path)} must be {noun(kind)}, not {self._kind_of(value, kind)}{shown(value)}"
        self.add(message, self.doc.position(path), detail(kind), hint(kind, value))

    @staticmethod
    def _kind_of(value: Any, kind: shapes.Type) -> str:
        """The words before a number where a string belongs, which would otherwise look like one."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or "string" not in noun(kind):
            return ""
        return "the integer " if isinstance(value, int) else "the number "

    def add(self, message: str, where: Any, expected: str = "", remedy: str = "") -> None:
        self.problems.append(Problem(message, where, expected, remedy))


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


def _accepts(kind: shapes.Type, value: Any, strict: bool) -> bool:
    if shape(kind) in ("mapping", "list"):
        return shape(kind) == _shape_of_value(value)
    try:
        msgspec.convert(value, _python_type(kind), strict=strict)
    except msgspec.ValidationError:
        return False
    return True


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


def inside(path: Path) -> str:
    """Where a missing value belongs, as the end of a sentence."""
    return f" in {_name(path)}" if path else ""


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
