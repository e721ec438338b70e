"""The lines of a Makefile that its conditions leave in, as far as their variables are known.

Form: https://www.gnu.org/software/make/manual/make.html#Conditionals
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from hpcgen.core.errors import Position

USED = re.compile(r"\$[({](\w+)[)}]")
"""A variable where its value is put in."""


class MakeVariables(Protocol):
    """What is known so far: by name, and in a text."""

    values: dict[str, str]

    def value(self, text: str) -> str: ...


def active(path: str, text: str, known: MakeVariables) -> Iterator[tuple[Position, str, bool]]:
    """Whole lines, continued ones joined, that no condition leaves out, and whether that is sure."""
    stack: list[bool | None] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line, start = lines[number], number + 1
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1]} {lines[number].strip()}"
        number += 1
        words = line.strip()
        if match := re.match(r"(else\s+)?(ifn?(?:eq|def))\b(.*)", words):
            if match[1] and stack:
                before = stack.pop()
                stack.append(False if before else _condition(match[2], match[3], known))
            else:
                stack.append(_condition(match[2], match[3], known))
        elif words.startswith("else") and stack and re.fullmatch(r"else\b\s*(#.*)?", words):
            before = stack.pop()
            stack.append(None if before is None else not before)
        elif re.match(r"endif\b", words) and stack:
            stack.pop()
        elif False not in stack:
            yield Position(path, start, 1), line, None not in stack


def _condition(how: str, text: str, known: MakeVariables) -> bool | None:
    if how in ("ifdef", "ifndef"):
        defined = text.split("#")[0].strip() in known.values
        return defined is (how == "ifdef")
    match = re.match(r"\s*\(\s*(.*?)\s*,\s*(.*?)\s*\)\s*(#.*)?$", text) or re.match(
        r"\s*[\"'](.*?)[\"']\s+[\"'](.*?)[\"']", text
    )
    if match is None:
        return None
    # Of a variable that nothing sets make makes an empty text; functions are not worked out.
    left, right = (USED.sub("", known.value(re.sub(r"\$\(strip (.*?)\)", r"\1", part))) for part in match.group(1, 2))
    if "$" in left + right:
        return None if "findstring" not in left + right else how == "ifneq"
    return (left == right) is (how == "ifeq")
