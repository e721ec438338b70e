"""Lists of nodes as Slurm writes them: ``c[001-100,200],login1``. Source: slurm.conf(5), NodeName."""

from __future__ import annotations

import itertools
import re

MOST_NAMES = 1_000_000
"""In all lists of a file together; the largest clusters have some ten thousand nodes, each in a few partitions."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"(\[[^\[\]]*\])")


class HostListError(ValueError):
    """A list of nodes that cannot be understood."""


class TooManyNamesError(Exception):
    """The lists of a file stand for more than ``MOST_NAMES`` names together."""


class HostLists:
    """The lists of one file, which may not stand for too many names together; a list that is met again counts once."""

    def __init__(self) -> None:
        self._left = MOST_NAMES
        self._known: dict[str, list[str]] = {}

    def names(self, text: str) -> list[str]:
        """All names of a list, in order.

        Raises
        ------
        HostListError: brackets that do not match, or what is no range.  TooManyNamesError
        """
        if text not in self._known:
            self._known[text] = self._names(text)
        return self._known[text]

    def take(self, count: int) -> None:
        """Count names that are put together otherwise; TooManyNamesError where they are too many."""
        self._left -= count
        if self._left < 0:
            raise TooManyNamesError

    def _names(self, text: str) -> list[str]:
        outside = _BRACKET.sub("", text)
        if "[" in outside or "]" in outside:
            raise HostListError("brackets that do not match" if "]" in outside else "a bracket that is not closed")
        found: dict[str, None] = {}
        for part in map(str.strip, _PART.findall(text)):
            choices = [self._numbers(piece) if piece.startswith("[") else [piece] for piece in _BRACKET.split(part)]
            size = 1
            for choice in choices:
                size *= len(choice)
            self.take(size)
            found.update(dict.fromkeys("".join(words) for words in itertools.product(*choices) if part))
        return list(found)

    def _numbers(self, bracket: str) -> list[str]:
        found: list[str] = []
        for part in bracket[1:-1].split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None:
                raise HostListError(f"{part.strip()[:40]!r} is no range of numbers")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise HostListError(f"the range {part.strip()} ends before it begins")
            self.take(last - first + 1)
            found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
        return found
