"""Which of two versions of Debian packages is newer.

Source: Debian policy 5.6.12: epoch, upstream version and revision; runs of digits as numbers, between them letters
before all others and ``~`` before everything, also before the end.
"""

from __future__ import annotations

import re

_Key = tuple[int, tuple[object, ...], tuple[object, ...]]


def sort_key(version: str) -> _Key:
    """A key by which versions sort from old to new."""
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return int(epoch) if epoch.isdigit() else 0, _part(upstream), _part(revision or "0")


def _part(text: str) -> tuple[object, ...]:
    """Texts and numbers by turns, each text with an end that sorts after ``~`` and before all else."""
    words = re.split(r"(\d+)", text)
    key: list[object] = []
    for position in range(0, len(words), 2):
        key.append((*(_rank(character) for character in words[position]), 0))
        key.append(int(words[position + 1]) if position + 1 < len(words) else 0)
    return tuple(key)


def _rank(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 1000
