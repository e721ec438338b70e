"""What was seen of a machine: facts by the paths that a site profile has for them, and what could not be detected."""

from __future__ import annotations

from typing import Any

import msgspec

NODE = "node"
"""Stands for ``partitions.NAME`` in the paths of facts of the node that was looked at."""


class SeenFact(msgspec.Struct, frozen=True):
    """One fact.

    path: as in a profile (``mpi.version``); of the node itself ``node.cpu.target``.
    value: plain data, as YAML would have it.
    how: where it was read, for people: a file, or a command.
    """

    path: str
    value: Any
    how: str


class Contradiction(msgspec.Struct, frozen=True):
    """Two places that say different things: ``kept`` is the one that counts, ``other`` the one that does not."""

    kept: SeenFact
    other: SeenFact

    @property
    def path(self) -> str:
        """Of both."""
        return self.kept.path

    def __str__(self) -> str:
        return (
            f"{self.path} is {_short(self.kept.value)} ({self.kept.how}), "
            f"but {_short(self.other.value)} ({self.other.how}): the first was written"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


class Seen(msgspec.Struct):
    """All facts by path, and the paths that stay open with the reason why.

    ``notes``: what was seen and has no place in a profile, for people. ``contradictions``: where several places were
    looked at, those that do not agree.
    """

    facts: dict[str, SeenFact] = {}
    unseen: dict[str, str] = {}
    notes: list[str] = []
    contradictions: list[Contradiction] = []

    def add(self, path: str, value: Any, how: str) -> None:
        """Note a fact; nothing known is no fact."""
        if value is not None and value != "" and value != []:
            self.facts[path] = SeenFact(path, value, how)

    def add_unseen(self, path: str, why: str) -> None:
        """Note that a fact could not be detected."""
        if path not in self.facts:
            self.unseen[path] = why

    def value(self, path: str) -> Any:
        """The value of a fact, None where it was not seen."""
        fact = self.facts.get(path)
        return fact.value if fact is not None else None
