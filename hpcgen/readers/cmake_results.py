"""Variables of CMake that a command sets by what it finds on the machine, so that nobody knows them before."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FIRST = re.compile(
    r"find_(program|library|path|file)|try_(compile|run)|get_(filename_component|\w*property)|separate_\w+"
)
_LAST = re.compile(r"check_\w+")
_SECOND = re.compile(r"check_\w+_source_(compiles|runs)")
_NAMED = (
    "RESULT_VARIABLE",
    "RESULTS_VARIABLE",
    "OUTPUT_VARIABLE",
    "ERROR_VARIABLE",
    "RESULT",
    "COMPILE_OUTPUT_VARIABLE",
)
_ARGUMENTS = "cmake_parse_arguments"


def results_of(command: str, words: Sequence[str]) -> list[str]:
    """The names that a command gives its results, by its words.

    Form: https://cmake.org/cmake/help/latest/manual/cmake-commands.7.html; modules Check… have theirs last, or
    behind a source.
    """
    found = [words[at + 1] for at, word in enumerate(words[:-1]) if word in _NAMED]
    if words and _FIRST.fullmatch(command):
        found.append(words[0])
    if words and _LAST.fullmatch(command):
        found.append(words[1] if _SECOND.fullmatch(command) and len(words) > 1 else words[-1])
    return found


def prefix_of(command: str, words: Sequence[str]) -> str:
    """What the variables begin with that a function makes of its arguments; empty for another command."""
    if command != _ARGUMENTS or not words:
        return ""
    return "".join(words[2:3]) if words[0] == "PARSE_ARGV" else words[0]
