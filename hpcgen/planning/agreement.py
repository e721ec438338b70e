"""Options in which blocks must be as those that they are built for, or with.

Where only one default gave way, the other does; and what one is compiled with has the language that it is written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from hpcgen.blocks.base import Facts
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, Problem, Problems
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.planning.resolver.resolve import NoPlanError

Settings = Mapping[str, Mapping[str, str]]


def agreeing(
    resolve: Callable[[Settings], list[PlannedBlock]], catalog: Catalog, facts: Facts, stack: Stack, said: Settings
) -> list[PlannedBlock]:
    """The blocks, of which those that are built for one another agree in their options, if they can.

    ``resolve``: chooses the blocks, with settings beside those of the stack. ``said``: what ``--set`` says.
    ConflictError: the user took away what one of them is compiled with.
    """
    blocks = resolve(said)
    while (more := _agreed(catalog, facts, blocks, stack, said)) is not None:
        try:
            blocks, said = resolve(more), more
        except NoPlanError:
            break
    Problems(
        Problem(
            f"{one.name} is compiled with {option}, which {other.name} lacks",
            remedy=f"--set {other.name}.{option}=true",
        )
        for one, other, option in _lacking(catalog, blocks)
    ).raise_as(ConflictError)
    return blocks


def _agreed(
    catalog: Catalog, facts: Facts, blocks: Sequence[PlannedBlock], stack: Stack, said: Settings
) -> Settings | None:
    """Settings with which blocks agree that do not; None where all do, or where what the user set stands against it."""
    there = {each.name: each for each in blocks if catalog.has_block(each.name)}
    found: dict[str, dict[str, str]] = {name: dict(values) for name, values in said.items()}
    for name, other, option in _pairs(catalog, there):
        values = [there[each].options.get(option) for each in (name, other)]
        free = [each for each in (name, other) if not _is_said(stack, found, each, option)]
        taken = next((value for value in values if _may_take(catalog, facts, free, option, value)), None)
        if taken is None:
            # One default gave way for a release for which the other's cannot: both keep theirs.
            taken = next((value for value in values if _is_usual(catalog, facts, free, option, value)), None)
        if values[0] != values[1] and taken is not None:
            for each in free:
                found.setdefault(each, {})[option] = str(taken)
    for _, lacking, option in _lacking(catalog, blocks):
        # What stands for MPI is said of that, too.
        if not any(_is_said(stack, found, each, option) for each in (lacking.name, catalog.identifier(lacking.name))):
            found.setdefault(lacking.name, {})[option] = "true"
    return found if found != said else None


def _pairs(catalog: Catalog, there: Mapping[str, PlannedBlock]) -> Iterator[tuple[str, str, str]]:
    for name in there:
        for other, option in catalog.block(name).agrees.items():
            if other in there:
                yield name, other, option


def passed_on(catalog: Catalog, blocks: Sequence[PlannedBlock]) -> Iterator[tuple[PlannedBlock, PlannedBlock, str]]:
    """Each block with an option that is passed on, one that it is compiled with, and the option."""
    for one in (each for each in blocks if catalog.has_block(each.name)):
        for option, wanted in catalog.block(one.name).passes_on.items():
            for other in blocks if one.options.get(option) else ():
                if option in other.options and catalog.identifier(other.name) in wanted:
                    yield one, other, option


def _lacking(catalog: Catalog, blocks: Sequence[PlannedBlock]) -> Iterator[tuple[PlannedBlock, PlannedBlock, str]]:
    """Of these, where the second has it not."""
    return (each for each in passed_on(catalog, blocks) if not each[1].options[each[2]])


def _is_said(stack: Stack, said: Settings, name: str, option: str) -> bool:
    return option in said.get(name, {}) or option in stack.blocks.get(name, StackBlock()).options


def _may_take(catalog: Catalog, facts: Facts, free: Sequence[str], option: str, value: object) -> bool:
    """Whether a default gives way to a value, in one block that may still change, that all others have or take too."""
    classes = [catalog.block(name) for name in free]
    taking = [value in each.alternatives(facts).get(option, ()) for each in classes]
    return any(taking) and all(
        taken or _is_usual(catalog, facts, [name], option, value) for taken, name in zip(taking, free, strict=True)
    )


def _is_usual(catalog: Catalog, facts: Facts, free: Sequence[str], option: str, value: object) -> bool:
    """Whether it is the default of all blocks that may still change, of which there is one."""
    usual = [value == catalog.block(name).defaults(facts).get(option) for name in free]
    return bool(usual) and all(usual)
