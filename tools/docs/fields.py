"""The fields of every kind of file that people write, from the JSON Schemas that hpcgen checks them by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from writing import cell, code, prose, table

from hpcgen.cli.schema_command import KINDS, schema_of

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """reference/fields/KIND.md."""
    return {f"reference/fields/{kind}.md": _page(kind, json.loads(schema_of(kind))) for kind in KINDS}


def _page(kind: str, schema: Schema) -> str:
    parts = {name: part for name, part in schema.get("$defs", {}).items() if not name.endswith("-part")}
    text = [f"# Fields of: {kind}\n", f"By `hpcgen schema {kind}`, which editors take too.\n"]
    for name, part in sorted(parts.items(), key=lambda pair: (pair[0].lower() != kind, pair[0])):
        if "properties" in part:
            text += [f"## {name}\n", prose(part.get("description", "")) + "\n", _table(part)]
    return "\n".join(text)


def _table(part: Schema) -> str:
    required = part.get("required", [])
    rows = []
    for name, field in part["properties"].items():
        default = "required" if name in required else _default(field)
        rows.append([code(name), _kind(field), cell(default), cell(prose(_words(field)))])
    return table(["field", "what it is", "default", "meaning"], rows)


def _default(field: Schema) -> str:
    return "" if field.get("default") in (None, "", [], {}) else str(field["default"])


def _words(field: Schema) -> str:
    example = field.get("examples", [""])[0]
    return f"{field.get('description', '')}{f' (`{example}`)' if example != '' else ''}"


def _kind(field: Schema) -> str:
    return " or ".join(dict.fromkeys(_kinds(field)))


def _kinds(field: Schema) -> Iterator[str]:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "anyOf" in field:
        for each in field["anyOf"]:
            yield from _kinds(each)
    elif "enum" in field:
        yield ", ".join(code(str(value)) for value in field["enum"])
    elif field.get("type") == "array":
        yield f"list of {_kind(field.get('items', {})) or 'values'}"
    elif field.get("additionalProperties"):
        inner = field["additionalProperties"]
        yield f"mapping to {_kind(inner) if isinstance(inner, dict) else 'values'}"
    elif "type" in field:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        yield from (str(each) for each in kinds if each != "null")
