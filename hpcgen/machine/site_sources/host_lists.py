"""Lists of nodes as Slurm writes them: ``c[001-100,200],login1``. Source: slurm.conf(5), NodeName."""

from __future__ import annotations

import itertools
import re

MOST_HOSTS = 200_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class HostListError(ValueError):
    """A list of nodes that cannot be understood."""


def hosts(text: str) -> list[str]:
    """All names of a list, in order.

    Raises
    ------
    HostListError: brackets that do not match, what is no range, or more than ``MOST_HOSTS`` names.
    """
    found: dict[str, None] = {}
    for part in _parts(text):
        pieces = re.split(r"(\[[^\[\]]*\])", part)
        choices = [_numbers(piece) if piece.startswith("[") else [piece] for piece in pieces if piece]
        size = 1
        for choice in choices:
            size *= len(choice)
        if size + len(found) > MOST_HOSTS:
            raise HostListError(f"more than {MOST_HOSTS} nodes")
        found.update(dict.fromkeys("".join(words) for words in itertools.product(*choices)))
    return list(found)


def _parts(text: str) -> list[str]:
    """What stands between commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise HostListError("brackets that do not match")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise HostListError("a bracket that is not closed")
    return [part.strip() for part in parts if part.strip()]


def _numbers(bracket: str) -> list[str]:
    found: list[str] = []
    for part in bracket[1:-1].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise HostListError(f"{part.strip()[:40]!r} is no range of numbers")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise HostListError(f"the range {part.strip()} ends before it begins")
        if last - first >= MOST_HOSTS:
            raise HostListError(f"more than {MOST_HOSTS} nodes")
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return found
