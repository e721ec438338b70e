"""Random small collections, and what a plain search finds in them: what the resolver is held against.

Nothing of hpcgen decides here. A world is data; ``expected`` tries candidates in the documented order, one identifier
after the other, and the first plan that holds is the one that is meant. ``python -m tests.helpers.random_questions
FIRST COUNT`` compares worlds by their numbers and prints the first ones that differ.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any, Literal

import hpcgen
from hpcgen.blocks.base import Block, BlockOptions, need
from hpcgen.catalog.catalog import Catalog
from hpcgen.errors import ConflictError, UnknownNameError
from hpcgen.model.release import Release


@dataclass
class Row:
    """A version; ``forms``: those that it has."""

    version: int
    accepts: dict[str, tuple[int, int]] = field(default_factory=dict)
    forms: tuple[str, ...] = ("whole", "small")


@dataclass
class Asked:
    """A need: from the lowest to the highest version; ``forms`` in which the block itself needs it."""

    name: str
    range: tuple[int, int] | None = None
    small_is_enough: bool = False
    forms: tuple[str, ...] = ("whole", "small")


@dataclass
class World:
    """What one question is about."""

    rows: dict[str, list[Row]]
    needs: dict[str, list[Asked]]
    virtuals: dict[str, list[str]]
    stack: dict[str, tuple[int, int] | None]
    settings: dict[str, int]


Chosen = dict[str, tuple[str, int, str]]
"""Identifier → block, version, form."""


def random_world(seed: int) -> World:
    """A world by its number."""
    dice = random.Random(seed)
    names = [f"b{number}" for number in range(dice.randint(2, 7))]
    dice.shuffle(names)
    virtuals: dict[str, list[str]] = {}
    if dice.random() < 0.6 and len(names) > 3:
        virtuals["v0"] = dice.sample(names, dice.randint(1, 2))
    if dice.random() < 0.3 and len(names) > 4:
        virtuals["v1"] = dice.sample(names, dice.randint(1, 2))
    # As the blocks say it themselves, one after the other.
    said = [(virtual, name) for name in names for virtual in virtuals if name in virtuals[virtual]]
    virtuals = {virtual: [name for other, name in said if other == virtual] for virtual, _ in said}
    most = dice.choice([2, 3, 4])

    def a_range() -> tuple[int, int]:
        low = dice.randint(1, most)
        return low, dice.randint(low, most)

    needs: dict[str, list[Asked]] = {}
    rows: dict[str, list[Row]] = {}
    for position, name in enumerate(names):
        rows[name] = []
        # Needs lead forward alone, so that there is no circle.
        later = names[position + 1 :]
        others = later + [v for v, providers in virtuals.items() if set(providers) <= set(later)]
        needs[name] = [
            Asked(
                other,
                a_range() if dice.random() < 0.3 else None,
                dice.random() < 0.5,
                dice.choice([("whole", "small"), ("whole", "small"), ("whole",), ("small",)]),
            )
            for other in dice.sample(others, min(len(others), dice.choice([0, 1, 1, 2, 3])))
        ]
        for version in range(1, dice.randint(1, most) + 1):
            accepts = {asked.name: a_range() for asked in needs[name] if dice.random() < 0.5}
            for asked in needs[name]:
                if asked.name in virtuals and dice.random() < 0.5:
                    accepts.pop(asked.name, None)
                    accepts[dice.choice(virtuals[asked.name])] = a_range()
            forms = dice.choice([("whole", "small")] * 3 + [("whole",), ("small",)])
            rows[name].append(Row(version, accepts, forms))
    stack = {name: a_range() if dice.random() < 0.2 else None for name in dice.sample(names, dice.randint(1, 2))}
    settings = {name: dice.randint(1, most) for name in names if dice.random() < 0.1}
    return World(rows, needs, virtuals, stack, settings)


# the plain search


def identifier(world: World, name: str) -> str:
    return next((virtual for virtual, providers in world.virtuals.items() if name in providers), name)


def expected(world: World) -> Chosen | None:
    """The plan that is meant: the first that a plain search in the documented order comes to."""
    asked: list[tuple[str, dict[str, tuple[int, int] | None], bool]] = []
    for name, wanted in world.stack.items():
        asked.append((identifier(world, name), {name: wanted}, False))
    order = [one for one, _, _ in asked]
    return _search(world, order, asked, {})


def _search(world: World, order: list[str], asked: list[Any], chosen: Chosen) -> Chosen | None:
    open_ = {one for one, _, _ in asked if one not in chosen}
    if not open_:
        return chosen
    here = min(open_, key=lambda one: (order.index(one) if one in order else len(order), one))
    # A block that is set stands for its virtual.
    named = [name for name in world.settings if identifier(world, name) == here]
    for block in world.virtuals.get(here, [here]):
        if any(name != block for name in named):
            continue
        for form in ("small", "whole"):
            for row in reversed(world.rows[block]):
                mine = (block, row.version, form)
                if form not in row.forms or world.settings.get(block, row.version) != row.version:
                    continue
                if form == "small" and not _somebody_wants_small(world, here, block, asked):
                    continue
                more = [*asked, *_needs(world, block, row, form)]
                all_chosen = {**chosen, here: mine}
                if all(
                    one not in all_chosen or _holds(all_chosen[one], allowed, small) for one, allowed, small in more
                ):
                    same = {each[0]: each for each in chosen.values()}.get(block, mine)
                    found = _search(world, order, more, all_chosen) if same == mine else None
                    if found is not None:
                        return found
    return None


def _somebody_wants_small(world: World, here: str, block: str, asked: list[Any]) -> bool:
    return any(one == here and block in allowed for one, allowed, _ in asked) and all(
        small for one, _, small in asked if one == here
    )


def _needs(world: World, block: str, row: Row, form: str) -> list[Any]:
    found: list[Any] = []
    for asked in world.needs[block]:
        if form not in asked.forms:
            continue
        providers = world.virtuals.get(asked.name)
        one = asked.name if providers else identifier(world, asked.name)
        everyone = providers or [asked.name]
        found.append((one, dict.fromkeys(everyone, asked.range), asked.small_is_enough))
        for name, said in row.accepts.items():
            if name == asked.name:
                found.append((one, dict.fromkeys(everyone, said), asked.small_is_enough))
            elif name in everyone:
                found.append((one, {**dict.fromkeys(everyone, None), name: said}, asked.small_is_enough))
    return found


def _holds(mine: tuple[str, int, str], allowed: dict[str, tuple[int, int] | None], small: bool) -> bool:
    block, version, form = mine
    if block not in allowed or (form == "small" and not small):
        return False
    said = allowed[block]
    return said is None or said[0] <= version <= said[1]


# the same for hpcgen


class Forms(BlockOptions, frozen=True):
    form: Literal["whole", "small"] = "whole"


def _text(said: tuple[int, int] | None) -> str:
    return f">={said[0]},<={said[1]}" if said else ""


def blocks_of(world: World) -> list[type[Block]]:
    """The world's blocks as classes."""
    made: list[type[Block]] = []
    for name, rows in world.rows.items():
        needs = tuple(
            need(
                asked.name,
                _text(asked.range),
                when=lambda situation, forms=asked.forms: situation.options.form in forms,
                enough={"form": "small"} if asked.small_is_enough else None,
            )
            for asked in world.needs[name]
        )
        releases = {
            str(row.version): Release(
                accepts={other: _text(said) for other, said in row.accepts.items()}, only={"form": list(row.forms)}
            )
            for row in rows
        }
        provides = tuple(virtual for virtual, providers in world.virtuals.items() if name in providers)
        made.append(
            type(
                name,
                (Block,),
                {"name": name, "provides": provides, "needs": needs, "Options": Forms, "releases": releases},
            )
        )
    return made


SITE = {
    "name": "plain",
    "title": "a plain site",
    "system": {"os": "debian"},
    "partitions": {"main": {"cpu": {"target": "x86_64_v3", "cores": 8}, "memory": {"total_gb": 32}}},
    "default_partition": "main",
    "containers": {"preferred": "docker", "engines": {"docker": {}}},
    "scheduler": {"kind": "none"},
    "network": {"internet": {"login": True, "compute": True}},
}


def plan_of(world: World, or_none: bool = True) -> hpcgen.Plan | None:
    """What hpcgen plans; None where it says that there is no plan, or its ConflictError if not ``or_none``."""
    lines = {name: {"version": _text(said)} if said else {} for name, said in world.stack.items()}
    catalog = Catalog([], blocks_of(world))
    it = {"name": "it", "title": "t", "blocks": lines, "run": {"command": ["it"], "mpi": False}}
    stack, site = hpcgen.load_stack(it, catalog=catalog), hpcgen.load_site(SITE)
    settings = {f"{name}.version": str(version) for name, version in world.settings.items()}
    try:
        return hpcgen.plan(site, stack, settings=settings, catalog=catalog)
    except ConflictError:
        if or_none:
            return None
        raise


def difference(world: World) -> str:
    """How hpcgen's plan differs from the one that is meant; empty if it does not."""
    wanted = expected(world)
    there = {block for block, _, _ in (wanted or {}).values()}
    try:
        plan = plan_of(world)
    except UnknownNameError as error:
        # What is set of a block that the plan does not have is refused by its name.
        lacking = wanted is not None and [name for name in world.settings if name not in there]
        return "" if lacking and all(f"no block {name!r}" in str(error) for name in lacking) else f"refused: {error}"
    found = None
    if plan is not None:
        own = {b.name: (int(b.version), str(b.options["form"])) for b in plan.blocks if b.name in world.rows}
        found = own
    said = None if wanted is None else {block: (version, form) for block, version, form in wanted.values()}
    return "" if found == said else f"expected {said}, planned {found}"


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    none = wrong = 0
    for seed in range(first, first + count):
        try:
            said = difference(random_world(seed))
        except Exception as error:  # a crash is a difference too
            said = f"crash: {error!r}"
        none += expected(random_world(seed)) is None
        if said:
            wrong += 1
            print(f"world {seed}: {said}")
            if wrong > 10:
                break
    print(f"{count} worlds, {none} without a plan, {wrong} answered otherwise")
