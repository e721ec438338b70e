"""Changes of a random world that must not change the answer.

``python -m tests.helpers.changed_worlds FIRST COUNT`` holds every rule against worlds by their numbers.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from hpcgen.core.model.plan import Plan
from tests.helpers.plain_search import roots, row_of, wanted_by
from tests.helpers.random_questions import Answer, answer
from tests.helpers.random_worlds import Asked, Range, Row, World, identifier, random_world

ANY: Range = (0, 99)


def whole(said: Answer) -> str:
    """All of an answer."""
    return msgspec.json.encode(said.blocks).decode() if isinstance(said, Plan) else f"{type(said).__name__}: {said}"


def choice(said: Answer) -> str:
    """All but why; of an error which kind it is."""
    if not isinstance(said, Plan):
        return type(said).__name__
    return str([msgspec.structs.replace(block, reasons=[]) for block in said.blocks])


def _differs(one: str, other: str) -> str:
    return "" if one == other else f"{one} became {other}"


def _chosen(world: World, said: Answer) -> dict[str, tuple[str, int, str]]:
    if not isinstance(said, Plan):
        return {}
    return {b.name: (b.name, int(b.version), str(b.options["form"])) for b in said.blocks if b.name in world.rows}


def pinned(world: World, said: Answer) -> str:
    """What was chosen, set."""
    if not isinstance(said, Plan):
        return ""
    there = _chosen(world, said)
    # A block that is set stands for the first of its virtuals, for which another one may be there.
    others = {name: {*world.virtuals.get(identifier(world, name), ())} & {*there} - {name} for name in there}
    settings = {**world.settings, **{name: version for name, version, _ in there.values() if not others[name]}}
    return _differs(choice(said), choice(answer(replace(world, settings=settings))))


def said_outright(world: World, said: Answer) -> str:
    """The form of each block: the same, unless a block is now there in a form that others do not take."""
    if not isinstance(said, Plan):
        return ""
    there = _chosen(world, said)
    settings = {f"{name}.form": form for name, _, form in there.values()}
    for virtual, providers in world.virtuals.items():
        # Where two are there, which stand for several, the plan does not say which one is for this.
        if len(named := [name for name in providers if name in there]) == 1:
            settings[f"{virtual}.provider"] = named[0]
    other = answer(world, settings)
    new = _chosen(world, other)
    asked = [*roots(world), *(each for mine in new.values() for each in wanted_by(world, mine))]
    if any(
        each.small is False and mine[2] == "small" and mine[0] in each.allowed
        for each in asked
        for mine in new.values()
    ):
        return ""
    return _differs(choice(said), choice(other))


def rows_shuffled(world: World, said: Answer) -> str:
    """Tables with their rows in another order."""
    dice = random.Random(1)
    rows = {
        name: [replace(row, accepts=_shuffled(row.accepts, dice)) for row in dice.sample(known, len(known))]
        for name, known in world.rows.items()
    }
    return _differs(choice(said), choice(answer(replace(world, rows=rows, settings=_shuffled(world.settings, dice)))))


def needs_shuffled(world: World, said: Answer) -> str:
    """Needs in another order: they are all needs."""
    dice = random.Random(1)
    needs = {name: dice.sample(asked, len(asked)) for name, asked in world.needs.items()}
    return _differs(_unordered(said), _unordered(answer(replace(world, needs=needs))))


def _unordered(said: Answer) -> str:
    return str(sorted(_named(said)) if isinstance(said, Plan) else type(said).__name__)


def _named(said: Plan) -> list[tuple[str, str, str]]:
    return [(block.name, block.version, str(block.options)) for block in said.blocks]


def _shuffled(values: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    return dict(dice.sample(list(values.items()), len(values)))


def only_chosen_rows(world: World, said: Answer) -> str:
    """Tables without the rows that were not chosen."""
    return _without(world, said, 0)


def fewer_rows(world: World, said: Answer) -> str:
    """Tables without half of those."""
    return _without(world, said, 0.5)


def _without(world: World, said: Answer, left: float) -> str:
    if not isinstance(said, Plan):
        return ""
    dice, there = random.Random(1), _chosen(world, said)
    rows = {
        name: [row for row in known if (name in there and row.version == there[name][1]) or dice.random() < left]
        for name, known in world.rows.items()
    }
    return _differs(choice(said), choice(answer(replace(world, rows=rows))))


def older_rows(world: World, said: Answer) -> str:
    """Copies of the oldest rows that are older still: the same, unless one of them is used."""
    other = answer(replace(world, rows={n: [replace(rows[0], version=0), *rows] for n, rows in world.rows.items()}))
    used = any(version == 0 for _, version, _ in _chosen(world, other).values())
    return "" if used else _differs(choice(said), choice(other))


def unrelated_blocks(world: World, said: Answer) -> str:
    """Blocks that nothing leads to and that need all there is: byte for byte the same."""
    needs = [Asked(name) for name in world.rows]
    other = replace(
        world,
        rows={"a": [Row(1), Row(2)], **world.rows, "z": [Row(1)]},
        needs={"a": needs, **world.needs, "z": [*needs, Asked("a")]},
    )
    return _differs(whole(said), whole(answer(other)))


def renamed(world: World, said: Answer) -> str:
    """Other names in the same order: the same but for them."""

    def new(name: str) -> str:
        return {"b": "a", "v": "w"}[name[0]] + name[1:]

    def of(row: Row) -> Row:
        accepts, beside = ({new(name): said for name, said in each.items()} for each in (row.accepts, row.beside))
        return replace(row, accepts=accepts, beside=beside)

    other = World(
        {new(name): [of(row) for row in rows] for name, rows in world.rows.items()},
        {new(name): [replace(asked, name=new(asked.name)) for asked in needs] for name, needs in world.needs.items()},
        {new(name): [new(each) for each in providers] for name, providers in world.virtuals.items()},
        {new(name): said for name, said in world.stack.items()},
        {new(name): said for name, said in world.settings.items()},
    )
    back = re.sub(r"\b([aw])(\d+)\b", lambda m: {"a": "b", "w": "v"}[m[1]] + m[2], whole(answer(other)))
    return _differs(whole(said), back)


def ranges_widened(world: World, said: Answer) -> str:
    """Ranges beyond all versions that there are, where they reach as far as these."""

    def wide(name: str, said: Range | None) -> Range | None:
        last = max(row.version for block in world.virtuals.get(name, [name]) for row in world.rows[block])
        return said and (0 if said[0] <= 1 else said[0], 99 if said[1] >= last else said[1])

    def of(row: Row) -> Row:
        return replace(row, accepts={name: wide(name, said) or ANY for name, said in row.accepts.items()})

    other = replace(
        world,
        rows={name: [of(row) for row in rows] for name, rows in world.rows.items()},
        needs={n: [replace(a, range=wide(a.name, a.range)) for a in needs] for n, needs in world.needs.items()},
        stack={name: wide(name, said) for name, said in world.stack.items()},
    )
    return _differs(choice(said), choice(answer(other)))


def a_range_opened(world: World, said: Answer) -> str:
    """Each range of a chosen row made any, one at a time: the same, unless the new plan does not keep to it."""
    there = _chosen(world, said)
    for block, version, _ in there.values():
        for name, (first, last) in row_of(world, block, version).accepts.items():
            rows = [
                replace(row, accepts={**row.accepts, name: ANY}) if row.version == version else row
                for row in world.rows[block]
            ]
            other = answer(replace(world, rows={**world.rows, block: rows}))
            new = _chosen(world, other)
            near = [new[each] for each in world.virtuals.get(name, [name]) if each in new]
            if new.get(block, ("", 0, ""))[1] == version and any(not first <= each[1] <= last for each in near):
                continue
            if text := _differs(choice(said), choice(other)):
                return f"with any {name} for {block} {version}: {text}"
    return ""


Rule = Callable[[World, Answer], str]
RULES: tuple[Rule, ...] = (
    pinned,
    said_outright,
    rows_shuffled,
    needs_shuffled,
    only_chosen_rows,
    fewer_rows,
    older_rows,
    unrelated_blocks,
    renamed,
    ranges_widened,
    a_range_opened,
)


def differences(first: int, count: int) -> list[str]:
    """What differs, by world and rule."""
    found = []
    for seed in range(first, first + count):
        world = random_world(seed)
        said = answer(world)
        found += [f"world {seed}, {rule.__name__}: {text}" for rule in RULES if (text := rule(world, said))]
    return found


if __name__ == "__main__":
    differing = differences(int(sys.argv[1]), int(sys.argv[2]))
    print(*differing, f"{sys.argv[2]} worlds, {len(differing)} differences", sep="\n")
