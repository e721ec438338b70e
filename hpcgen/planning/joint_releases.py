"""Releases of blocks whose Python packages go together: what an image has of several of them is one environment.

The resolver knows nothing of wheels. Where the lists of what it chose clash, the releases that clash for that reason
are ruled out beside one another, and it chooses again. So each block has the newest release, in the order of choice,
with which the lists agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import TypeVar

from msgspec.structs import replace

from hpcgen.blocks.requirements import Origin, Requirement, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, Problem, Remedy
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import Reason
from hpcgen.core.support.units import some
from hpcgen.planning.question import MisfitError
from hpcgen.planning.resolver.question import Apart
from hpcgen.planning.resolver.resolve import NoPlanError
from hpcgen.recipe.clashes import rule_text
from hpcgen.recipe.joint_pins import ListClash
from hpcgen.recipe.parts import ListClashError, certain_needs
from hpcgen.recipe.version_choice import VersionRule

T = TypeVar("T")
TRIED = 12
"""So many choices are made at most until the lists of one go together; each rules out all that clash for one reason."""


def first_joint(choose: Callable[[Sequence[Apart]], T], catalog: Catalog) -> T:
    """The first choice whose lists go together.

    choose: makes a plan in which these releases are apart.
    ListClashError: the first clash, where nothing else could be tried, with the releases of all that were.
    NoPlanError: the request leaves no other releases; with that clash.
    """
    apart: list[Apart] = []
    seen: list[ListClashError] = []
    while True:
        try:
            return choose(apart)
        except ListClashError as error:
            seen.append(error)
            more = list(_apart(error, catalog)) if len(seen) < TRIED else []
            if not more:
                raise _with_tried(seen) from None
            apart += more
        except NoPlanError as error:
            error.first = _with_tried(seen) if seen else None
            raise
        except MisfitError:
            raise
        except HpcgenError:
            # Of an older release it may not be known how it is installed here.
            if seen:
                raise _with_tried(seen) from None
            raise


def _with_tried(seen: Sequence[ListClashError]) -> ListClashError:
    """The first clash; where others were met on the way, with the releases of all."""
    first = seen[0]
    labels = [f"{name} {number}" for each in seen for clash in each.clashes for name, number in clash.releases.items()]
    if len(seen) == 1:
        return first
    *others, last = first.problems
    told = f"{last.message}; tried: {some(list(dict.fromkeys(labels)), 12)}"
    return ListClashError([*others, replace(last, message=told)], first.clashes, first.plan)


def with_remedies(error: HpcgenError, remedies: tuple[Remedy, ...]) -> HpcgenError:
    """A clash with changes of the request that were tried, before what else could be done."""
    *others, last = error.problems
    text = "\n  or: ".join(filter(None, [*(each.text for each in remedies), last.remedy]))
    found = ConflictError([*others, replace(last, remedy=text)])
    found.remedies = remedies
    return found


def _apart(error: ListClashError, catalog: Catalog) -> Iterator[Apart]:
    """What the clashes rule out; nothing where one of them takes no block that could have another release."""
    if not all(clash.releases for clash in error.clashes):
        return
    for clash, problem in zip(error.clashes, error.problems, strict=True):
        yield from _Excluded(error.plan, catalog, clash, problem).all()


class _Excluded:
    """Which releases of the blocks of one clash do not go together, by what they ask for and what that requires.

    Of more than two blocks the first and the last of the stack give way, beside the others as they are.
    """

    def __init__(self, plan: Plan, catalog: Catalog, clash: ListClash, problem: Problem) -> None:
        self.plan, self.catalog, self.clash, self.problem = plan, catalog, clash, problem
        order = list(plan.stack.blocks)
        names = sorted(clash.releases, key=lambda name: (order.index(name) if name in order else len(order), name))
        self.first, self.last = names[0] if len(names) > 1 else "", names[-1]
        self.ranges = cache(self._ranges)
        self.suit = cache(_suit)

    def all(self) -> Iterator[Apart]:
        """For each release what it leaves of the other block; of one block alone what the other packages leave."""
        firsts = sorted(self.catalog.releases(self.first), key=version) if self.first else [""]
        lasts = sorted(self.catalog.releases(self.last), key=version)
        mine = (self.clash.releases.get(self.first, ""), self.clash.releases[self.last])
        for first in firsts:
            texts: dict[str, list[str]] = {}
            for last in lasts:
                # Where the ranges meet and no known version lies in them, it is this very choice that is ruled out.
                if text := self._why(first, last) or (self.problem.message if (first, last) == mine else ""):
                    texts.setdefault(text, []).append(last)
            yield from (self._apart(first, _left(lasts, excluded), text) for text, excluded in texts.items())

    def _apart(self, first: str, versions: str, text: str) -> Apart:
        identifier = self.catalog.identifier(self.last)
        allowed = {**dict.fromkeys(self.catalog.virtuals.get(identifier, ()), ""), self.last: versions}
        by, kind = (self.first, "block") if first else ("the project", "file")
        bound = Reason(rule="not beside", by=by, by_version=first, of=self.last, found=text)
        origin = Origin(by, kind=kind, version=first, bounds=(bound,))
        return Apart(self.first, first, Requirement(identifier, allowed, origin, demanded=False))

    def _why(self, first: str, last: str) -> str:
        """The package of which no version suits two releases, and what they require of it; empty if none is known."""
        one = self.ranges(self.first, first) if first else {}
        other = self.ranges(self.last, last)
        for package in dict.fromkeys(rule.package for rule in self.clash.rules):
            beside = [rule for rule in self._others if rule.package == package]
            said = [each[package] for each in (one, other) if package in each]
            if package in other and not self.suit((*said, *(str(rule.specifier) for rule in beside))):
                told = [f"{self.first} {first} requires {one[package]}"] if package in one else []
                told += [f"{self.last} requires {other[package]}", *map(rule_text, beside)]
                return f"no version of {package} suits all: {', '.join(told)}"
        return ""

    @cached_property
    def _others(self) -> list[VersionRule]:
        """What else takes part in the clash, but for what rests on versions that only other lists have."""
        labels = {f"{name} {self.clash.releases[name]}" for name in (self.first, self.last) if name}
        said = ((each, each.by if each.of is None else each.block) for each in self.clash.rules)
        return [each for each, label in said if label and label not in labels]

    def _ranges(self, name: str, number: str) -> Mapping[str, str]:
        """What is certain of a release, by package: no other choice of the lists' versions changes it."""
        blocks = [replace(each, version=number) if each.name == name else each for each in self.plan.blocks]
        found: dict[str, list[str]] = {}
        # A release that cannot be had here, or with other options, says nothing.
        with suppress(HpcgenError):
            for each in certain_needs(replace(self.plan, blocks=blocks), self.catalog, name):
                found.setdefault(each.name, []).append(str(each.specifier))
        return {package: ",".join(dict.fromkeys(filter(None, several))) for package, several in found.items()}


def _suit(ranges: Sequence[str]) -> bool:
    from packaging.specifiers import SpecifierSet

    from hpcgen.recipe.version_choice import can_hold

    return can_hold(SpecifierSet(",".join(filter(None, ranges))))


def _left(known: Sequence[str], excluded: Collection[str]) -> str:
    """A range that holds the known releases, oldest first, but for the excluded."""
    kept = [number for number, each in enumerate(known) if each not in excluded]
    if not kept:
        return f"<{known[0]}"
    first, last = kept[0], kept[-1]
    ends = [f">={known[first]}"] if first else []
    ends += [f"!={each}" for each in known[first:last] if each in excluded]
    return ",".join([*ends, *([f"<{known[last + 1]}"] if last + 1 < len(known) else [])])
