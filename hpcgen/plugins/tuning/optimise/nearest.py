"""A release that is wished for, and the nearest of those that there are."""

from __future__ import annotations

import re
from collections.abc import Iterable


def number_in(wanted: str) -> str:
    """The first version that a range names; "" if it names none."""
    found = re.search(r"\d+(?:\.\d+)*", wanted)
    return found[0] if found else ""


def nearest_first(wanted: str, known: Iterable[str]) -> list[str]:
    """Versions by their distance from the one that a range names: a major release counts most; the newer of two."""
    aim = _weight(number_in(wanted))
    return sorted(known, key=lambda each: (abs(_weight(each) - aim), -_weight(each)))


def _weight(version: str) -> int:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch
