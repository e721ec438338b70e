"""JSON Schemas of the files that people write. They come from the types; ``site.json`` lies here for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpcgen.core.model.fields import NAMES_OF

_MODELINE = "# yaml-language-server: $schema="
_PART = "-part"
_VALUES = ("default", "examples", "enum", "const", "propertyNames", "pattern", "description", "title")
"""Keywords whose content is no schema of a value."""


def schema_text(record: type, names: Mapping[str, Sequence[str]]) -> str:
    """The JSON Schema of a kind of file, as text.

    ``record``: what the file is read into, such as :class:`~hpcgen.core.model.site.Site`. ``names``: what each registry
    knows (``{"formats": ["docker", …]}``), which files can name.
    """
    from hpcgen.core.config.decoding import schema

    described = _with_names(schema(record), names)
    if says_less := [{"required": [field]} for field in ("extends", "abstract") if field in record.__annotations__]:
        described = _with_parts(described, record, says_less)
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _with_names(node: Any, names: Mapping[str, Sequence[str]]) -> Any:
    if isinstance(node, list):
        return [_with_names(item, names) for item in node]
    if not isinstance(node, dict):
        return node
    known = {"enum": list(names[node[NAMES_OF]])} if isinstance(node.get(NAMES_OF), str) else {}
    return {key: _with_names(value, names) for key, value in node.items() if key != NAMES_OF} | known


def _with_parts(described: dict[str, Any], record: type, says_less: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of profiles or recipes, where one with ``extends`` or ``abstract`` need not say everything.

    What such a file leaves out is said by its parent or by its children; what it sets to null is removed.
    """
    whole = described.pop("$ref")
    definitions = described.pop("$defs")
    parts = {f"{name}{_PART}": _as_part(each) for name, each in definitions.items()}
    parts[f"{record.__name__}{_PART}"]["required"] = ["name"]
    return {
        **described,
        "if": {"anyOf": says_less},
        "then": {"$ref": f"{whole}{_PART}"},
        "else": {"$ref": whole},
        "$defs": {**definitions, **parts},
    }


def _as_part(node: Any) -> Any:
    """A schema with nothing required, and null allowed for every property of a mapping."""
    if isinstance(node, list):
        return [_as_part(item) for item in node]
    if not isinstance(node, dict):
        return node
    part = {
        key: value if key in _VALUES else _as_part(value)
        for key, value in node.items()
        if key not in ("required", "properties")
    }
    if "$ref" in part:
        part["$ref"] += _PART
    if "properties" in node:
        part["properties"] = {name: _or_null(_as_part(each)) for name, each in node["properties"].items()}
    if isinstance(part.get("additionalProperties"), dict):
        part["additionalProperties"] = _or_null(part["additionalProperties"])
    return part


def _or_null(described: Any) -> dict[str, Any]:
    known = described.get("anyOf", [described]) if isinstance(described, dict) else [described]
    return {"anyOf": known if {"type": "null"} in known else [*known, {"type": "null"}]}


def editor_comment(profile: Path | None = None) -> str:
    """The line at the head of a profile by which editors with a YAML language server find the schema.

    Source: the README of yaml-language-server, "Using inlined schema": an address, a relative or an absolute path.

    ``profile``: the profile's file; beside the package the path is relative, so that it holds in every checkout.
    """
    schema = Path(__file__).resolve().parent / "site.json"
    checkout = schema.parents[4]
    if profile is not None and profile.resolve().parent == checkout / "site_profiles":
        return f"{_MODELINE}../{schema.relative_to(checkout).as_posix()}\n"
    return f"{_MODELINE}{schema}\n"
