"""Templates of the build scripts, filled by name: ``@{name}`` stands for a value.

string.Template serves: these scripts have no loops or conditions of their own, and it costs no start-up time.
"""

from __future__ import annotations

import string
from functools import lru_cache
from pathlib import Path


class _Template(string.Template):
    delimiter = "@"
    pattern = r"""
        @(?:(?P<escaped>@)|(?P<named>(?!))|\{(?P<braced>[a-z_]+)\}|(?P<invalid>(?!)))
    """  # type: ignore[assignment]


@lru_cache(maxsize=16)
def _template(name: str) -> _Template:
    return _Template(Path(__file__).with_name(name).read_text("utf-8"))


def fill(name: str, /, **values: str) -> str:
    """The template ``name`` with every ``@{value}`` replaced; a missing or unused value is a KeyError.

    Values must already be quoted for the place that they stand in.
    """
    template = _template(name)
    unused = set(values) - {found["braced"] for found in template.pattern.finditer(template.template)}  # type: ignore[attr-defined]
    if unused:
        raise KeyError(f"{name} has no {', '.join(sorted(unused))}")
    return template.substitute(values)
