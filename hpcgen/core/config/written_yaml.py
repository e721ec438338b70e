"""YAML that a program wrote, such as a lock: numbers are numbers, and a short text is never endless data.

PyYAML's own loaders compose a tree by recursion in C, which ends the process where a text is nested deeply, and take
``1:2:3`` for a number to the base 60, in quadratic time.
"""

from __future__ import annotations

import re
from typing import Any

from hpcgen.core.config.plain_yaml import REFUSED, PlainReader
from hpcgen.core.errors import InputError, Problem

# As PyYAML's dumper writes numbers; text that looks like one it puts in quotes.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_BROKEN = re.compile(r"-?[0-9]{1,20}\.[0-9]{0,20}(?:e[-+][0-9]{1,3})?")


def read_written(text: str, name: str) -> dict[str, Any]:
    """The mapping in a text; InputError with all that is wrong, ``name`` is what messages call it."""
    if refused := REFUSED.search(text):
        raise InputError(
            Problem(
                f"it contains the character U+{ord(refused[0]):04X}",
                name,
                remedy="write it as an escape in double quotes, or take it out",
            )
        )
    return _WrittenReader(text, name).read()


class _WrittenReader(PlainReader):
    def plain_scalar(self, value: str) -> Any:
        if _WHOLE.fullmatch(value):
            return int(value)
        return float(value) if _BROKEN.fullmatch(value) else super().plain_scalar(value)
