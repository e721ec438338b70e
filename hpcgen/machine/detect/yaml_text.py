"""Plain data as YAML, the way that people write profiles: no quotes where none are needed."""

from __future__ import annotations

import re
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]


class _Dumper(yaml.SafeDumper):  # type: ignore[misc, unused-ignore]
    """Only ``true``, ``false`` and ``null`` have a meaning of their own, as in :mod:`hpcgen.core.config.yamlfile`."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])


def _number(dumper: Any, value: float) -> Any:
    # Neither is told from text here: the record that reads it wants a number.
    return dumper.represent_scalar("tag:yaml.org,2002:str", f"{value:g}" if isinstance(value, float) else str(value))


_Dumper.add_representer(int, _number)
_Dumper.add_representer(float, _number)


def dump(data: Any) -> str:
    """YAML with a line end; keys in their order."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text


def comment(text: str) -> str:
    """One comment line; what cannot be printed is left out."""
    words = " ".join(text.split())
    return "# " + "".join(character for character in words if character.isprintable()) + "\n"


def inline(data: Any) -> str:
    """The same on one line, without the line end."""
    if isinstance(data, str):
        # Beside a mapping, so that text of its own does not end with YAML's mark of a document's end.
        return inline([data])[1:-1]
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000, default_flow_style=True
    )
    return text.removesuffix("\n").removesuffix("\n...")
