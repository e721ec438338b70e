"""The same question asked of other release tables, in which what changed has no part in the plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import msgspec

from hpcgen.backends.hardware.fabrics import GPU_NETWORK_BLOCKS
from hpcgen.blocks.requirements import in_range, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.release import Release
from tests.helpers.shipped_plans import USED, Asked, answer, catalog, choice, differs, whole

OLDER = ("0.0.1", "0.0.2")
"""Versions that no table has, older than all."""

Rows = dict[str, Release]
Edit = Callable[[str, Rows], Rows]
"""From a block's name and rows to other rows."""


class Edited(Catalog):
    """The shipped collection with other rows in its tables; what is loaded is shared with it."""

    def __init__(self, edit: Edit) -> None:
        vars(self).update(vars(catalog()))
        self._edit, self._edited = edit, dict[str, Rows]()
        # What was worked out of the shipped tables does not hold for these.
        self.nodes, self.with_drivers = {}, {}

    def releases(self, name: str) -> Rows:
        if name not in self._edited:
            self._edited[name] = self._edit(name, catalog().releases(name))
        return self._edited[name]


def _changed(plan: Plan | str, asked: Asked, edit: Edit) -> str:
    return differs(choice(plan), choice(answer(asked, Edited(edit))))


def only_chosen_rows(asked: Asked, plan: Plan | str) -> str:
    """Tables that have nothing but the rows that were chosen."""
    if isinstance(plan, str):
        return USED
    chosen = {(block.name, block.version) for block in plan.blocks}
    return _changed(plan, asked, lambda name, rows: {v: row for v, row in rows.items() if (name, v) in chosen})


def fewer_rows(asked: Asked, plan: Plan | str) -> str:
    """Tables without half of the rows that were not chosen."""
    if isinstance(plan, str):
        return USED
    chosen = {(block.name, block.version) for block in plan.blocks}

    def some(name: str, rows: Rows) -> Rows:
        dice = random.Random(f"{asked} {name}")
        return {v: row for v, row in rows.items() if (name, v) in chosen or dice.random() < 0.5}

    return _changed(plan, asked, some)


def older_rows(asked: Asked, plan: Plan | str) -> str:
    """Each table with copies of its rows that are older than all of it: no trace of them where they are not used."""
    if isinstance(plan, str):
        return USED
    other = answer(asked, Edited(lambda name, rows: {**_older(rows), **rows}))
    if isinstance(other, Plan) and any(block.version in OLDER for block in other.blocks):
        return USED
    return differs(whole(plan), whole(other))


def _older(rows: Rows) -> Rows:
    by_age = sorted(rows, key=version)
    return {OLDER[0]: rows[by_age[0]], OLDER[1]: rows[by_age[-1]]}


def unrelated_rows(asked: Asked, plan: Plan | str) -> str:
    """Newer rows in the tables of all blocks that nothing in the question can lead to: byte for byte the same."""
    there = _reachable(asked.stack)
    more = Edited(lambda name, rows: rows if name in there else {**rows, "9999": rows[max(rows, key=version)]})
    return differs(whole(plan), whole(answer(asked, more)))


@cache
def _reachable(stack: str) -> frozenset[str]:
    """The blocks that a stack and the needs of blocks lead to, whatever their conditions."""
    by_default = [*GPU_NETWORK_BLOCKS.values(), *(row.adds for row in catalog().measured_defaults if row.adds)]
    open_ = ["base", "site_trust", "rank_test", *by_default, *catalog().stack(stack).blocks]
    found: set[str] = set()
    while open_:
        name = open_.pop()
        for block in catalog().virtuals.get(catalog().identifier(name), [name]):
            if block not in found:
                found.add(block)
                open_ += [need.name for need in catalog().block(block).needs]
    return frozenset(found)


def ranges_widened(asked: Asked, plan: Plan | str) -> str:
    """Every range of tables and stack made as wide as it can be with the same versions of the tables in it."""
    blocks = {
        name: msgspec.structs.replace(said, version=widened(name, said.version))
        for name, said in catalog().stack(asked.stack).blocks.items()
    }
    stack = msgspec.structs.replace(catalog().stack(asked.stack), blocks=blocks)
    return differs(choice(plan), choice(answer(asked, _widened_catalog(), stack)))


@cache
def _widened_catalog() -> Catalog:
    def widen(_: str, rows: Rows) -> Rows:
        return {
            number: msgspec.structs.replace(
                row,
                accepts={name: widened(name, said) for name, said in row.accepts.items()},
                on={name: widened(name, said) for name, said in row.on.items()},
            )
            for number, row in rows.items()
        }

    return Edited(widen)


def widened(name: str, said: str) -> str:
    """A range up to the next versions that it leaves out; as it is where those that it takes do not stand together."""
    blocks = catalog().virtuals.get(name, [name])
    known = sorted({v for block in blocks for v in catalog().releases(block)}, key=version)
    taken = [number for number, each in enumerate(known) if in_range(each, said)]
    if not said or not taken:
        return said
    parts = [f">{known[taken[0] - 1]}"] if taken[0] else []
    parts += [f"<{known[taken[-1] + 1]}"] if taken[-1] + 1 < len(known) else []
    wide = ",".join(parts)
    return wide if [n for n, each in enumerate(known) if in_range(each, wide)] == taken else said


def a_range_opened(asked: Asked, plan: Plan | str) -> str:
    """Each range of a chosen row made any version, one at a time: the same, unless the new plan does not keep to it."""
    if isinstance(plan, str):
        return USED
    found = []
    for block in plan.blocks:
        row = catalog().releases(block.name)[block.version]
        for field in ("accepts", "on"):
            found += [_opened(asked, plan, block, field, name) for name in getattr(row, field)]
    return "; ".join(each for each in found if each)


def _opened(asked: Asked, plan: Plan, block: PlannedBlock, field: str, name: str) -> str:
    row = catalog().release(block)
    ranges: dict[str, str] = getattr(row, field)
    wider = msgspec.structs.replace(row, **{field: {**ranges, name: ""}})
    edit: Edit = lambda of, rows: {**rows, block.version: wider} if of == block.name else rows  # noqa: E731
    other = answer(asked, Edited(edit))
    if isinstance(other, str) and other.startswith("ListClashError"):
        return ""  # the newest that the wider row takes has wheel lists of another time
    if isinstance(other, Plan) and any((b.name, b.version) == (block.name, block.version) for b in other.blocks):
        there = [b for b in other.blocks if b.name in catalog().virtuals.get(name, [name])]
        if not all(in_range(b.version, ranges[name]) for b in there):
            return ""
    said = differs(choice(plan), choice(other))
    return f"with any {name} for {block.label}: {said}" if said else ""


RULES = (only_chosen_rows, fewer_rows, older_rows, unrelated_rows, ranges_widened, a_range_opened)
