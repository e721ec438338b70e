"""Random small collections, as plain data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

Range = tuple[int, int]
"""From the lowest to the highest version."""


@dataclass
class Row:
    """A version; ``forms``: those that it has; ``beside``: what it works with of blocks that it need not need."""

    version: int
    accepts: dict[str, Range] = field(default_factory=dict)
    forms: tuple[str, ...] = ("whole", "small")
    beside: dict[str, Range] = field(default_factory=dict)


@dataclass
class Asked:
    """A need; ``forms`` in which the block itself needs it."""

    name: str
    range: Range | None = None
    small_is_enough: bool = False
    forms: tuple[str, ...] = ("whole", "small")


@dataclass
class World:
    """What one question is about."""

    rows: dict[str, list[Row]]
    needs: dict[str, list[Asked]]
    virtuals: dict[str, list[str]]
    stack: dict[str, Range | None]
    settings: dict[str, int]


def identifier(world: World, name: str) -> str:
    """What is chosen once where a block may be chosen."""
    return next((virtual for virtual, providers in world.virtuals.items() if name in providers), name)


def random_world(seed: int) -> World:
    """A world by its number."""
    dice = random.Random(seed)
    names = [f"b{number}" for number in range(dice.randint(2, 12))]
    dice.shuffle(names)
    virtuals = _virtuals(names, dice)
    most = dice.choice([2, 3, 4, 5])
    # Rows that take one version each; how often needs may lead back, and so in a circle.
    narrow, back = dice.random() < 0.15, dice.choice([0, 0, 0.2, 0.6])

    newest = {name: dice.randint(1, most) for name in names}

    def a_range(of: str) -> Range:
        # Now and then of versions that there are not.
        last = most if dice.random() < 0.1 else max(newest[name] for name in virtuals.get(of, [of]))
        low = dice.randint(1, last)
        return low, low if narrow else dice.randint(low, last)

    needs: dict[str, list[Asked]] = {}
    rows: dict[str, list[Row]] = {}
    for position, name in enumerate(names):
        later = names if dice.random() < back else names[position + 1 :]
        others = later + [v for v, providers in virtuals.items() if set(providers) <= set(later)]
        needs[name] = [
            Asked(
                other,
                a_range(other) if dice.random() < 0.2 else None,
                dice.random() < 0.5,
                dice.choice([("whole", "small"), ("whole", "small"), ("whole",), ("small",)]),
            )
            for other in dice.sample(others, min(len(others), dice.choice([0, 1, 2, 2, 3])))
        ]
        rows[name] = [
            Row(version, _accepts(needs[name], virtuals, dice, a_range, 0.6 if narrow else 0.5), _forms(dice))
            for version in range(1, newest[name] + 1)
        ]
    _put_beside(rows, random.Random(f"beside {seed}"))
    stack = {
        name: a_range(name) if dice.random() < 0.2 else None
        for name in dice.sample(names, dice.choice([1, 2, 2, 3][: len(names)]))
    }
    world = World(rows, needs, virtuals, stack, {})
    near = [name for name in names if dice.random() < (0.1 if name in _reachable(world) else 0.01)]
    return replace(world, settings={name: dice.randint(1, newest[name]) for name in near})


def _put_beside(rows: dict[str, list[Row]], dice: random.Random) -> None:
    """In some worlds, what some rows work with of other blocks. With dice of its own: the rest stays as it was."""
    if dice.random() < 0.4:
        for name in rows:
            for row in rows[name]:
                for other in dice.sample([each for each in rows if each != name], dice.choice([0, 0, 0, 1])):
                    low = dice.randint(1, len(rows[other]))
                    row.beside[other] = low, dice.randint(low, len(rows[other]))


def _reachable(world: World) -> set[str]:
    """The blocks that the stack and needs may lead to."""
    found: set[str] = set()
    open_ = list(world.stack)
    while open_:
        name = open_.pop()
        for block in world.virtuals.get(name, world.virtuals.get(identifier(world, name), [name])):
            if block not in found:
                found.add(block)
                open_ += [asked.name for asked in world.needs[block]]
    return found


def _virtuals(names: list[str], dice: random.Random) -> dict[str, list[str]]:
    virtuals = {
        f"v{number}": dice.sample(names, dice.choice([1, 2, 2, 3]))
        for number, (chance, blocks) in enumerate([(0.7, 4), (0.5, 5), (0.4, 6)])
        if dice.random() < chance and len(names) >= blocks
    }
    if len(virtuals) > 1 and dice.random() < 0.3:
        # One of them stands for two.
        one, other, *_ = virtuals
        virtuals[other][0] = next((name for name in virtuals[one] if name not in virtuals[other]), virtuals[other][0])
    # As the blocks say it themselves, one after the other.
    said = [(virtual, name) for name in names for virtual in virtuals if name in virtuals[virtual]]
    return {virtual: [name for other, name in said if other == virtual] for virtual, _ in said}


def _accepts(
    needs: list[Asked],
    virtuals: dict[str, list[str]],
    dice: random.Random,
    a_range: Callable[[str], Range],
    chance: float,
) -> dict[str, Range]:
    accepts = {asked.name: a_range(asked.name) for asked in needs if dice.random() < chance}
    for asked in needs:
        if asked.name in virtuals and dice.random() < 0.5:
            accepts.pop(asked.name, None)
            provider = dice.choice(virtuals[asked.name])
            accepts[provider] = a_range(provider)
    return accepts


def _forms(dice: random.Random) -> tuple[str, ...]:
    return dice.choice([("whole", "small")] * 8 + [("whole",), ("small",)])
