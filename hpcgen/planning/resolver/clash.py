"""Minimal sets of requirements, and of candidates, that clash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from hpcgen.blocks.requirements import Candidate, Requirement
from hpcgen.planning.resolver.exact import Exact

THINNED = 500
"""Up to so many requirements of blocks are tried for whether the clash takes each."""
ORDER = ("set", "stack", "file", "site", "always", "block")


class Clash(msgspec.Struct, frozen=True):
    """Requirements, the user's first, and candidates that exclude each other."""

    requirements: list[Requirement]
    candidates: list[Candidate]


def clash(stated: Exact, candidates: Sequence[Candidate] = ()) -> Clash:
    """The clash with these candidates, or without candidates the clash that excludes any plan.

    Without any of the requirements and candidates the others fit together. What versions of a block ask alike counts as
    one requirement.
    """
    return _Thinning(stated).clash(candidates)


class _Thinning:
    def __init__(self, stated: Exact) -> None:
        self.stated = stated
        self.texts: dict[int, list[Requirement]] = {}

    def clash(self, candidates: Sequence[Candidate]) -> Clash:
        stated = self.stated
        core = set(stated.solver.core()) if not stated.solve(candidates) else set()
        groups = [group for group in stated.groups if group in core]
        kept = [c for c in candidates if stated.variable[c] in core]
        for candidate in list(kept):
            rest = [c for c in kept if c != candidate]
            if not stated.solve(rest, groups):
                kept = rest
        # Circles and those of the tables first, so that what the user said stays where either would do.
        groups.sort(key=lambda group: (group not in stated.circles, len(stated.groups[group]) == 1))
        apart = [part for group in sorted(self._thinned(groups, kept)) for part in self._taken_apart(group)]
        if len(apart) <= THINNED:
            apart = self._thinned(apart, kept)
        told: dict[tuple[str, str], Requirement] = {}
        for each in (each for switch in apart for each in self._shown(switch, apart, kept)):
            told.setdefault((each.origin.by, str(each)), each)
        return Clash(sorted(told.values(), key=lambda each: ORDER.index(each.origin.kind)), kept)

    def _thinned(self, groups: Sequence[int], beside: Sequence[Candidate]) -> list[int]:
        left = list(groups)
        for group in groups:
            rest = [each for each in left if each != group]
            if not self.stated.solve(beside, rest):
                left = rest
        return left

    def _taken_apart(self, group: int) -> list[int]:
        """A switch for each text of what the versions of a block ask of another; other groups as they are."""
        held = self.stated.groups[group]
        if group in self.stated.circles or held[0].origin.kind != "block":
            return [group]
        by_text: dict[str, int] = {}
        for requirement in held:
            switch = by_text.setdefault(str(requirement), 0) or self.stated.new_variable()
            by_text[str(requirement)] = switch
            self.texts.setdefault(switch, []).append(requirement)
            asking = self.stated.variable[self._asking[id(requirement)]]
            self.stated.solver.add_clause([-switch, -asking, self.stated.satisfied(requirement)])
        return list(by_text.values())

    @cached_property
    def _asking(self) -> Mapping[int, Candidate]:
        """The versions that have each requirement of a block."""
        return {id(need): c for c in self.stated.variable for _, _, need in self.stated.question.needs(c)}

    def _shown(self, switch: int, among: Sequence[int], beside: Sequence[Candidate]) -> list[Requirement]:
        """Of the versions that ask alike one that the rest of the clash leaves."""
        alike = self.texts.get(switch)
        if alike is None:
            return self.stated.groups[switch]
        rest = [each for each in among if each != switch]
        left = (each for each in alike if self.stated.solve([*beside, self._asking[id(each)]], rest))
        return [next(left, alike[0])]
