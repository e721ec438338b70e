"""What a plain search finds in a world: what the resolver is held against. Nothing of hpcgen decides here.

Candidates are tried in the documented order, one identifier after the other: the first plan that holds is the one
that is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tests.helpers.random_worlds import Range, Row, World, identifier

Chosen = dict[str, tuple[str, int, str]]
"""Identifier → block, version, form; in the order of choice."""

Key = tuple[str, str]
"""Who asks (a block, ``blocks.NAME`` of the stack, ``--set NAME``, ``site``), and of which identifier."""

LIMIT = 200_000
"""Candidates that are tried in a world at most."""


class TooLongError(Exception):
    """A world that a plain search does not get done with."""


@dataclass(frozen=True)
class Wanted:
    """A requirement; ``small``: whether the small form is enough, None where any form will do."""

    by: str
    version: int | None
    identifier: str
    allowed: Mapping[str, Range | None]
    small: bool | None
    demanded: bool = True

    @property
    def key(self) -> Key:
        return self.by, self.identifier

    def accepts(self, mine: tuple[str, int, str]) -> bool:
        block, version, form = mine
        if block not in self.allowed or (form == "small" and self.small is False):
            return False
        said = self.allowed[block]
        return said is None or said[0] <= version <= said[1]


def roots(world: World) -> list[Wanted]:
    """What stack and settings ask."""
    found = [
        Wanted(f"blocks.{name}", None, identifier(world, name), {name: said}, False)
        for name, said in world.stack.items()
    ]
    for name, number in world.settings.items():
        one, only = identifier(world, name), (number, number)
        found.append(Wanted(f"--set {name}", None, one, {name: only}, None, demanded=False))
        for virtual, providers in world.virtuals.items():
            if name in providers and virtual != one:
                # Where it stands for another virtual as well, its version is the same.
                allowed = {**dict.fromkeys(providers, None), name: only}
                found.append(Wanted(f"--set {name}", None, virtual, allowed, None, demanded=False))
    return found


def row_of(world: World, block: str, version: int) -> Row:
    return next(row for row in world.rows[block] if row.version == version)


def wanted_by(world: World, mine: tuple[str, int, str]) -> list[Wanted]:
    """What a candidate needs."""
    block, version, form = mine
    found: list[Wanted] = []
    for asked in world.needs[block]:
        if form not in asked.forms:
            continue
        providers = world.virtuals.get(asked.name)
        one = asked.name if providers else identifier(world, asked.name)
        everyone = providers or [asked.name]
        ranges: list[dict[str, Range | None]] = []
        for name, said in row_of(world, block, version).accepts.items():
            if name == asked.name:
                ranges.append(dict.fromkeys(everyone, said))
            elif name in everyone:
                ranges.append({**dict.fromkeys(everyone, None), name: said})
        if asked.range or not ranges:
            ranges.insert(0, dict.fromkeys(everyone, asked.range))
        found += [Wanted(block, version, one, allowed, asked.small_is_enough) for allowed in ranges]
    for name, said in row_of(world, block, version).beside.items():
        virtuals = [virtual for virtual, providers in world.virtuals.items() if name in providers]
        for one in virtuals or [name]:
            allowed = {**dict.fromkeys(world.virtuals.get(one, ()), None), name: said}
            found.append(Wanted(block, version, one, allowed, None, demanded=False))
    return found


@dataclass
class Search:
    """One search: ``given`` are choices that are there anyway, ``only`` the requirements that count, all if None."""

    world: World
    given: Chosen = field(default_factory=dict)
    only: Collection[Key] | None = None
    circles: bool = False
    """Whether blocks may need each other."""
    tried: int = 0

    def plan(self) -> Chosen | None:
        """The first plan that holds."""
        asked = [wanted for wanted in roots(self.world) if self._counts(wanted.key)]
        asked += [
            Wanted("given", None, one, {mine[0]: (mine[1], mine[1])}, mine[2] == "small")
            for one, mine in self.given.items()
        ]
        return self._search(asked, {})

    def _counts(self, key: Key) -> bool:
        return self.only is None or key in self.only

    def _search(self, asked: list[Wanted], chosen: Chosen) -> Chosen | None:
        order = [identifier(self.world, name) for name in self.world.stack]
        open_ = {each.identifier for each in asked if each.demanded and each.identifier not in chosen}
        if not open_:
            return chosen
        here = min(open_, key=lambda one: (order.index(one) if one in order else len(order), one))
        mine_asked = [each for each in asked if each.identifier == here]
        for mine in self._candidates(here, mine_asked):
            self.tried += 1
            if self.tried > LIMIT:
                raise TooLongError
            more = [each for each in wanted_by(self.world, mine) if self._counts(each.key)]
            all_chosen = {**chosen, here: mine}
            fits = all(each.accepts(mine) for each in mine_asked) and all(
                each.accepts(all_chosen[each.identifier]) for each in more if each.identifier in all_chosen
            )
            same = next((each for each in chosen.values() if each[0] == mine[0]), mine) == mine
            if fits and same and (self.circles or not self._circle(here, all_chosen)):
                found = self._search([*asked, *more], all_chosen)
                if found is not None:
                    return found
        return None

    def _candidates(self, here: str, asked: list[Wanted]) -> list[tuple[str, int, str]]:
        """All that stand for an identifier, the best first."""
        if here in self.given:
            return [self.given[here]]
        found = []
        for block in self.world.virtuals.get(here, [here]):
            wants_small = any(each.small and block in each.allowed for each in asked)
            for form in ("small", "whole") if wants_small else ("whole",):
                for row in sorted(self.world.rows[block], key=lambda row: -row.version):
                    if form in row.forms or not self._counts(("site", here)):
                        found.append((block, row.version, form))
        return found

    def _circle(self, start: str, chosen: Chosen) -> bool:
        """Whether something chosen needs itself by way of others that are chosen."""
        seen: set[str] = set()
        open_ = [start]
        while open_:
            here = open_.pop()
            for each in wanted_by(self.world, chosen[here]):
                other = each.identifier
                if other == here or other not in chosen or not each.demanded or not self._counts(each.key):
                    continue
                if other == start:
                    return True
                if other not in seen:
                    seen.add(other)
                    open_.append(other)
        return False


def expected(world: World, circles: bool = False) -> Chosen | None:
    """The plan that is meant; ``circles``: where blocks might need each other."""
    return Search(world, circles=circles).plan()
