"""Conditions of a shell script that it answers itself if nothing is set from outside: ``[ "${DEBUG:-0}" -eq 1 ]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from hpcgen.readers.shell_values import Values, plain, unknown

_FROM_OUTSIDE = re.compile(
    r"(SLURM|PBS|SGE|LSB|PJM|OMPI|PMI|CUDA|CONDA|HIP|ROCR)\w*|[A-Z]*PATH|HOME|USER|HOSTNAME|\d+|[@*#?]"
)
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-lt": lambda a, b: a < b,
    "-ge": lambda a, b: a >= b,
    "-le": lambda a, b: a <= b,
}


def verdict(raw: list[str], values: Values, assigned: Collection[str]) -> bool | None:
    """What a test says; None where the script does not tell.

    ``assigned``: variables to which the script gives some value, known or not; all others are taken to be unset.
    """
    if len(raw) < 3 or raw[0] not in ("[", "[[", "test"):
        return None
    words = raw[1:-1] if raw[0] != "test" else raw[1:]
    negated = words[:1] == ["!"]
    words = words[1:] if negated else words
    found: bool | None = None
    if len(words) == 2 and words[0] in ("-z", "-n"):
        text = _text(words[1], values, assigned)
        found = None if text is None else (text == "") == (words[0] == "-z")
    elif len(words) == 3 and words[1] in (*_TEXTS, *_NUMBERS):
        first, second = _text(words[0], values, assigned), _text(words[2], values, assigned)
        if first is not None and second is not None and "*" not in second:
            if words[1] in _TEXTS:
                found = _TEXTS[words[1]](first, second)
            elif re.fullmatch(r"\d{1,9}", first) and re.fullmatch(r"\d{1,9}", second):
                found = _NUMBERS[words[1]](int(first), int(second))
    return found if found is None or not negated else not found


def _text(raw: str, values: Values, assigned: Collection[str]) -> str | None:
    """What a word is, a variable that nobody sets being empty."""
    text = values.text(raw)
    unset = re.fullmatch(r"\$\{?(\w+)\}?", text)
    if unset and unset[1] not in assigned and not _FROM_OUTSIDE.fullmatch(unset[1]):
        return ""
    return None if unknown(text) else plain(text)
