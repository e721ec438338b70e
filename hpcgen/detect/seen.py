"""What was seen of a machine: facts by the paths that a site profile has for them, and what could not be detected."""

from __future__ import annotations

from typing import Any

import msgspec

NODE = "node"
"""Stands for ``partitions.NAME`` in the paths of facts of the node that was looked at."""


class SeenFact(msgspec.Struct, frozen=True):
    """One fact.

    Parameters
    ----------
    path: as in a profile (``mpi.version``); of the node itself ``node.cpu.target``.
    value: plain data, as YAML would have it.
    how: where it was read, for people: a file, or a command.
    """

    path: str
    value: Any
    how: str


class Seen(msgspec.Struct):
    """All facts by path, and the paths that stay open with the reason why.

    ``notes``: what was seen and has no place in a profile, for people.
    """

    facts: dict[str, SeenFact] = {}
    unseen: dict[str, str] = {}
    notes: list[str] = []

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
