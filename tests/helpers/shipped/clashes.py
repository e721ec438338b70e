"""What a plan's reasons or a conflict name as clashing, asked of the search with nothing but that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hpcgen.core.model.reasons import Reason
from tests.helpers.shipped.problem import Asked, Bound, Candidate, Problem, Refused
from tests.helpers.shipped.search import Everything, Search


class Said(NamedTuple):
    """What was named: a requirement of a ``root`` or a ``block``, a range of the ``site``, a fact or an option."""

    rule: str
    by: str
    of: str = ""
    what: Any = None

    @property
    def group(self) -> object:
        """What stands or falls together: a block's needs of another; else each alone."""
        return (self.by, self.of) if self.rule == "block" else self


def said(reason: Reason) -> Said:
    """A record of a clash."""
    requires = None if reason.requires is None else frozenset(reason.requires.items())
    if reason.rule == "asked":
        return Said("block" if reason.by_version else "root", reason.by, reason.of, requires)
    return Said("site", reason.by, reason.place, requires) if reason.rule == "site" else Said(reason.rule, reason.by)


class Named(Everything):
    """Only what was named. ``loosely``: with a requirement of a block, those of its other versions on the same."""

    def __init__(self, named: Iterable[Said], loosely: bool) -> None:
        self.named = set(named)
        self.pairs = {each.group for each in self.named if each.rule == "block"} if loosely else set()

    def asks(self, asked: Asked) -> bool:
        requires = None if asked.requires is None else frozenset(asked.requires)
        mine = Said("block" if asked.block else "root", asked.by, asked.of, requires)
        return mine in self.named or mine.group in self.pairs

    def bounds(self, name: str, bound: Bound) -> bool:
        return Said("site", bound.reason, bound.place, frozenset({(bound.block, bound.versions)})) in self.named

    def refuses(self, candidate: Candidate, refused: Refused) -> bool:
        return Said(refused.rule, refused.by) in self.named


def faults(problem: Problem, named: list[Reason], fixed: Mapping[str, Candidate], newer: Candidate | None) -> list[str]:
    """What is wrong with a named clash: it is none, or holds more than it takes.

    Parameters
    ----------
    fixed: the candidates that are named, by identifier.
    newer: the one of them that the clash is about; None if it is about none.
    """
    all_said = dict.fromkeys(map(said, named))

    def fits(named: Iterable[Said], fixed: Mapping[str, Candidate], loosely: bool = True) -> bool:
        return Search(problem, Named(named, loosely)).exists(fixed)

    if fits(all_said, fixed, loosely=False):
        return ["what is named does not clash" + ("" if fits(all_said, fixed) else ", but for what is left out")]
    found = []
    for group in dict.fromkeys(each.group for each in all_said):
        if not fits([each for each in all_said if each.group != group], fixed):
            found.append(f"for the clash it does not take {group}")
    for name, candidate in fixed.items():
        rest = {other: each for other, each in fixed.items() if other != name}
        if candidate != newer and not fits(all_said, rest):
            found.append(f"for the clash it does not take {candidate.block} {candidate.version}")
    return found
