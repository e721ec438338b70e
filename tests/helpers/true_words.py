"""Whether what hpcgen says of a random world is true: the reasons of its plan, the requirements that it says clash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpcgen.blocks.requirements import Requirement, in_range
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.reasons import Reason
from tests.helpers.plain_search import Chosen, Key, Search, Wanted, expected, roots, row_of, wanted_by
from tests.helpers.random_worlds import World, identifier

Said = tuple[str, str, str, frozenset[tuple[str, str]] | None]
"""Who asks, its version, of which identifier, which ranges."""


def false_reasons(world: World, plan: Plan) -> list[str]:
    """Reasons of a plan that do not hold, and requirements that no reason says."""
    chosen = expected(world)
    assert chosen is not None
    found = []
    for block in plan.blocks:
        if block.name in world.rows:
            said = [reason for reason in block.reasons if isinstance(reason, Reason)]
            checks = _Reasons(world, chosen, block)
            found += [f"{block.label}: {reason.rule}: {reason}" for reason in said if not checks.true(reason)]
            found += [f"{block.label}: {missing} is not said" for missing in checks.unsaid(said)]
    return found


class _Reasons:
    """What is true of a planned block."""

    def __init__(self, world: World, chosen: Chosen, block: PlannedBlock) -> None:
        self.world, self.chosen = world, chosen
        self.mine = (block.name, int(block.version), str(block.options["form"]))
        self.stands_for = [one for one, each in chosen.items() if each[0] == block.name]
        self.asked = [
            each
            for each in [*roots(world), *(each for mine in chosen.values() for each in wanted_by(world, mine))]
            if each.identifier in self.stands_for
        ]
        newer = [row.version for row in world.rows[block.name] if row.version > self.mine[1]]
        self.newer = (block.name, min(newer), self.mine[2]) if newer else None

    def true(self, reason: Reason) -> bool:
        if reason.rule == "newest":
            return self.newer is None
        if not reason.newer:
            asked = any(_said(reason) in _texts(self.world, each) for each in self.asked)
            return asked if reason.rule == "asked" else self._refuses_forms(reason)
        if self.newer is None or reason.newer != str(self.newer[1]):
            return False
        checks = {"option": self._option, "refused": self._refused, "needs": self._needs, "rest": self._rest}
        return reason.rule in checks and checks[reason.rule](reason, self.newer)

    def unsaid(self, said: list[Reason]) -> list[str]:
        """Requirements on it that are not among the reasons; of a block that stands for two it is told for one."""
        told = {_said(reason) for reason in said if reason.rule == "asked"}
        asked = self.asked if len(self.stands_for) == 1 else []
        missing = [str(each) for each in asked if told.isdisjoint(_texts(self.world, each))]
        last = said[-1].rule if said else "asked"
        return [*missing, *(["why not newer"] if last == "asked" else [])]

    def _refuses_forms(self, reason: Reason) -> bool:
        """Of an option: that there are versions which cannot be had with it."""
        block = reason.by.removesuffix(".form")
        form = self.mine[2] if block == self.mine[0] else "whole"
        near = any(
            identifier(self.world, block) == one or block in self.world.virtuals.get(one, ()) for one in self.stands_for
        )
        return reason.found == form and near and any(form not in row.forms for row in self.world.rows[block])

    def _option(self, reason: Reason, newer: tuple[str, int, str]) -> bool:
        return reason.found == newer[2] and newer[2] not in row_of(self.world, newer[0], newer[1]).forms

    def _refused(self, reason: Reason, newer: tuple[str, int, str]) -> bool:
        return any(_said(reason) in _texts(self.world, each) and not each.accepts(newer) for each in self.asked)

    def _needs(self, reason: Reason, newer: tuple[str, int, str]) -> bool:
        return any(
            not each.accepts(self.chosen[one])
            for here in self.stands_for
            for one in self._before(here)
            for each in wanted_by(self.world, newer)
            if each.identifier == one == reason.of and reason.found == "{} {}".format(*self.chosen[one])
        )

    def _before(self, here: str) -> Chosen:
        order = list(self.chosen)
        return {one: self.chosen[one] for one in order[: order.index(here)]}

    def _rest(self, reason: Reason, newer: tuple[str, int, str]) -> bool:
        """No plan has it beside what was chosen before, and what is named stands against it by itself."""
        for here in self.stands_for:
            before = self._before(here)
            if Search(self.world, {**before, here: newer}).plan() is None:
                named = [each for each in reason.clash if each.rule == "chosen"]
                there = {(each.by, each.by_version) for each in named}
                given = {one: each for one, each in before.items() if (each[0], str(each[1])) in there}
                keys = {key for each in reason.clash for key in self._keys(each)}
                if there <= {(b, str(v)) for b, v, _ in given.values()}:
                    return Search(self.world, {**given, here: newer}, keys).plan() is None
        return False

    def _keys(self, reason: Reason) -> Iterator[Key]:
        if reason.rule == "asked":
            yield from _in_these_words(self.world, (reason.place or reason.by, reason.of), reason.requires)
        if reason.rule == "option":
            block = reason.by.removesuffix(".form")
            yield "site", identifier(self.world, block)
            yield from (("site", virtual) for virtual, providers in self.world.virtuals.items() if block in providers)


def _said(reason: Reason) -> Said:
    ranges = None if reason.requires is None else frozenset(reason.requires.items())
    return reason.place or reason.by, reason.by_version, reason.of, ranges


def _texts(world: World, wanted: Wanted) -> Iterator[Said]:
    """A requirement as a reason may say it."""
    version = "" if wanted.version is None else str(wanted.version)
    ranges = {name: f">={said[0]},<={said[1]}" if said else "" for name, said in wanted.allowed.items()}
    everyone = set(world.virtuals.get(wanted.identifier, ())) == set(ranges)
    if wanted.by.startswith("--set"):
        exact = {name: said[0] for name, said in wanted.allowed.items() if said}
        for sign in ("", "=="):
            texts = {name: f"{sign}{exact[name]}" if name in exact else "" for name in ranges}
            yield wanted.by, version, wanted.identifier, frozenset(texts.items())
        return
    if everyone and not any(ranges.values()):
        yield wanted.by, version, wanted.identifier, None
    yield wanted.by, version, wanted.identifier, frozenset(ranges.items())


def false_clash(world: World, clash: list[Requirement]) -> str:
    """What is wrong with requirements that are said to clash by themselves; empty if nothing is."""
    if len(clash) == 1 and clash[0].origin.kind != "block" and not _fitting(world, clash[0]):
        return ""
    keys: dict[Key, set[Key]] = {}
    for each in clash:
        keys.setdefault(_key(each), set()).update(_in_these_words(world, _key(each), each.allowed))
    every = set().union(*keys.values())
    # Where they clash without a word of circles, that there is one beside does not matter.
    circles = Search(world, only=every, circles=True).plan() is None
    if not circles and Search(world, only=every).plan() is not None:
        return f"no clash: {sorted(every)}"
    needless = [mine for mine in keys.values() if Search(world, only=every - mine, circles=circles).plan() is None]
    return f"of {sorted(every)} not needed: {needless}" if needless else ""


def _fitting(world: World, requirement: Requirement) -> bool:
    """Whether there is a version that a requirement is for, though a setting alone asks for none."""
    ranges = requirement.allowed or {}
    return any(in_range(str(row.version), said) for name, said in ranges.items() for row in world.rows[name])


def _key(requirement: Requirement) -> Key:
    origin = requirement.origin
    return "site" if origin.kind == "site" else origin.path or origin.by, requirement.identifier


def _in_these_words(world: World, key: Key, allowed: Mapping[str, str] | None) -> set[Key]:
    """A requirement, and that of the same block in the same words on what else the other block stands for."""
    by, _ = key
    forms = [(by, row.version, form) for row in world.rows.get(by, ()) for form in row.forms]
    others = [each for mine in forms for each in wanted_by(world, mine)]
    text = None if allowed is None else frozenset(allowed.items())
    return {key} | {each.key for each in others if (words := list(_texts(world, each))) and words[-1][3] == text}
