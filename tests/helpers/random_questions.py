"""Random small collections, asked of hpcgen and of a plain search.

``python -m tests.helpers.random_questions FIRST COUNT`` compares worlds by their numbers and prints the first ones
that differ.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Literal

import hpcgen
from hpcgen.blocks.base import Block, BlockOptions, need
from hpcgen.blocks.requirements import Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, InputError, UnknownNameError
from hpcgen.core.model.fields import Source
from hpcgen.core.model.release import Beside, Release
from hpcgen.core.model.stack import RunSpec, Stack, StackBlock
from hpcgen.planning.question import question_of
from hpcgen.planning.resolver.clash import clash_of
from tests.helpers.plain_search import expected
from tests.helpers.random_worlds import Range, World, random_world
from tests.helpers.true_words import false_clash, false_reasons

SOURCE = Source(from_="dice", checked="2026-11-23", verified="yes")


class Forms(BlockOptions, frozen=True):
    form: Literal["whole", "small"] = "whole"


def _text(said: Range | None) -> str:
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
                accepts={other: _text(said) for other, said in row.accepts.items()},
                only={"form": list(row.forms)},
                beside=[
                    Beside(message="they fail together", source=SOURCE, accepts={other: _text(said)})
                    for other, said in row.beside.items()
                ],
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


def plan_of(world: World, or_none: bool = True, settings: Mapping[str, str] | None = None) -> hpcgen.Plan | None:
    """What hpcgen plans, with further settings.

    None where it says that there is no plan, or its ConflictError if not ``or_none``.
    """
    lines = {name: {"version": _text(said)} if said else {} for name, said in world.stack.items()}
    catalog = Catalog([], blocks_of(world))
    it = {"name": "it", "title": "t", "blocks": lines, "run": {"command": ["it"], "mpi": False}}
    stack, site = hpcgen.load_stack(it, catalog=catalog), hpcgen.load_site(SITE)
    versions = {f"{name}.version": str(version) for name, version in world.settings.items()}
    try:
        return hpcgen.plan(site, stack, settings={**versions, **(settings or {})}, catalog=catalog)
    except ConflictError:
        if or_none:
            return None
        raise


Answer = hpcgen.Plan | HpcgenError


def answer(world: World, settings: Mapping[str, str] | None = None) -> Answer:
    """hpcgen's plan, or its error."""
    try:
        plan = plan_of(world, or_none=False, settings=settings)
    except HpcgenError as error:
        return error
    assert plan is not None
    return plan


def difference(world: World, said: Answer | None = None) -> str:
    """How hpcgen's answer differs from what is meant; empty if it does not."""
    wanted, said = expected(world), said or answer(world)
    chosen = None if wanted is None else {block: (version, form) for block, version, form in wanted.values()}
    if isinstance(said, hpcgen.Plan):
        found = {b.name: (int(b.version), str(b.options["form"])) for b in said.blocks if b.name in world.rows}
        return "" if found == chosen else f"expected {chosen}, planned {found}"
    right = False
    if isinstance(said, UnknownNameError) and chosen is not None:
        # What is set of a block that the plan does not have is refused by its name.
        lacking = [name for name in world.settings if name not in chosen]
        right = bool(lacking) and all(f"no block {name!r}" in str(said) for name in lacking)
    elif isinstance(said, ConflictError):
        right = chosen is None and expected(world, circles=True) is None
    elif isinstance(said, InputError) and chosen is None and expected(world, circles=True) is not None:
        circle = re.findall(r"(b\d+) needs (b\d+)", str(said))
        right = bool(circle) and all(_may_need(world, one, other) for one, other in circle)
    return "" if right else f"expected {chosen}, said {said}"


def _may_need(world: World, one: str, other: str) -> bool:
    needed = {provider for asked in world.needs[one] for provider in world.virtuals.get(asked.name, [asked.name])}
    return other in needed or any({other, name} <= set(p) for name in needed for p in world.virtuals.values())


def clash(world: World) -> list[Requirement]:
    """The requirements that the error names."""
    catalog, site = Catalog([], blocks_of(world)), hpcgen.load_site(SITE)
    lines = {name: StackBlock(version=_text(said)) for name, said in world.stack.items()}
    stack = Stack(name="it", title="t", blocks=lines, run=RunSpec(["it"], mpi=False))
    settings = {name: {"version": str(version)} for name, version in world.settings.items()}
    question = question_of(catalog, site, site.default_partition, stack, settings)
    return clash_of(question)


def falsehood(world: World, said: Answer) -> str:
    """What is not true of an answer beside the plan: its reasons, or which requirements clash."""
    if isinstance(said, hpcgen.Plan):
        return "; ".join(false_reasons(world, said))
    return false_clash(world, clash(world)) if isinstance(said, ConflictError) else ""


def main(first: int, count: int) -> None:
    """Compare worlds by their numbers."""
    figures = Counter[str]()
    for seed in range(first, first + count):
        world = random_world(seed)
        try:
            said = answer(world)
            wrong = difference(world, said) or falsehood(world, said)
        except Exception as error:  # a crash is a difference too
            said, wrong = InputError(""), f"crash: {error!r}"
        figures[type(said).__name__] += 1
        if isinstance(said, hpcgen.Plan):
            figures.update(
                f"reasons {reason.rule}" for b in said.blocks for reason in b.reasons if b.name in world.rows
            )
        if wrong:
            figures["DIFFERENCES"] += 1
            print(f"world {seed}: {wrong}")
    print(", ".join(f"{number} {name}" for name, number in sorted(figures.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
