"""Which members of a fleet need building: the hash of each plan against the lock."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from hpcgen.backends.engines import format_to_build
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, Position, Problem
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import BuilderName
from hpcgen.plugins.fleet.file import FleetMember, LoadedFleet
from hpcgen.plugins.fleet.records import LockedImage

State = Literal["unchanged", "changed", "new", "no plan"]


class MemberState(msgspec.Struct, frozen=True):
    """A member and its plan; ``reason`` says why it is to be built, ``problems`` why it has no plan."""

    member: FleetMember
    state: State
    reason: str = ""
    content: str = ""
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def format(self) -> str:
        """Of the recipe; empty where no plan says it."""
        return self.plan.format if self.plan is not None else self.member.format or ""

    @property
    def to_build(self) -> bool:
        """Whether something is to be done; a member without a plan too, which then says what is wrong."""
        return self.state != "unchanged"


def member_states(
    loaded: LoadedFleet, locked: Mapping[str, LockedImage], names: Sequence[str] = ()
) -> list[MemberState]:
    """Plan what the members, or those of ``names``, ask for, and compare. A member that has no plan is no exception."""
    members = [loaded.member(name) for name in names] if names else loaded.members
    answer = functools.cache(functools.partial(_answer, loaded.catalog))
    return [_state(answer(_question(member)), member, locked.get(member.name)) for member in members]


class _Question(NamedTuple):
    """All of a member that its plan depends on: members that ask the same share one plan."""

    site: str
    stack: str
    partition: str | None
    settings: tuple[str, ...]
    format: FormatName | None
    engine: BuilderName | None
    allow_unsupported: bool
    latest_base: bool


def _question(member: FleetMember) -> _Question:
    # With a format the engine does not choose one.
    engine = member.engine if member.format is None else None
    asked = (member.partition, member.settings, member.format, engine, member.allow_unsupported)
    return _Question(member.site, member.stack, *asked, member.latest_base)


def _answer(catalog: Catalog, asked: _Question) -> tuple[Plan, str] | HpcgenError:
    """The plan and its hash, or why there is none."""
    from hpcgen.planning.planner import make_plan
    from hpcgen.recipe.assemble import assemble

    try:
        site, stack = catalog.site(asked.site), catalog.stack(asked.stack)
        document, base = catalog.stack_document(asked.stack), None
        if stack.from_ is not None:
            from hpcgen.supply.pin.foreign_base import stack_base

            file = document.file_of(["from"])
            base = stack_base(catalog, stack, file.parent if file is not None else Path(), site)
        plan = make_plan(
            catalog,
            site,
            stack,
            partition=asked.partition,
            settings=asked.settings,
            format=asked.format or format_to_build(site.containers.preferred, asked.engine),
            allow_unsupported=asked.allow_unsupported,
            latest_base=asked.latest_base,
            site_document=catalog.site_document(asked.site),
            stack_document=document,
            base=base,
        )
        return plan, assemble(plan, catalog).labels["io.hpcgen.content"]
    except HpcgenError as error:
        return error


def _placed(problem: Problem, member: FleetMember) -> Problem:
    where = problem.where if isinstance(problem.where, Position) else member.place
    return Problem(f"{member.name}: {problem.message}", where, problem.expected, problem.remedy)


def _state(answer: tuple[Plan, str] | HpcgenError, member: FleetMember, before: LockedImage | None) -> MemberState:
    if isinstance(answer, HpcgenError):
        problems = tuple(_placed(each, member) for each in answer.problems)
        return MemberState(member, "no plan", problems[0].message, problems=problems)
    plan, content = answer
    if before is None:
        return MemberState(member, "new", "never built", content, plan)
    reason = _difference(member, plan, content, before)
    return MemberState(member, "changed" if reason else "unchanged", reason, content, plan)


def _difference(member: FleetMember, plan: Plan, content: str, before: LockedImage) -> str:
    if before.content != content:
        return f"the plan was {before.content[:12]}"
    if before.format != plan.format:
        return f"the format was {before.format}"
    if member.engine is not None and before.engine != member.engine:
        return f"built by {before.engine}, not by {member.engine}"
    if member.test and not before.tested:
        return "built but never tested"
    return ""


def published_name(loaded: LoadedFleet, member: FleetMember, content: str) -> str:
    """REGISTRY/NAME:CONTENT, with the first 12 digits of the hash; empty without a registry or a plan."""
    registry = loaded.fleet.registry
    return f"{registry}/{member.name}:{content[:12]}" if registry and content else ""


def as_json(loaded: LoadedFleet, states: Sequence[MemberState]) -> list[dict[str, Any]]:
    """The states of the members as ``hpcgen fleet --json`` prints them, for pipelines."""
    rows = []
    for each in states:
        member, plan = each.member, each.plan
        rows.append(
            {
                "name": member.name,
                "stack": member.stack,
                "site": member.site,
                "partition": plan.partition if plan is not None else member.partition or "",
                "format": each.format,
                "engine": member.engine or "",
                "test": member.test,
                "state": each.state,
                "reason": each.reason,
                "content": each.content,
                "publish": published_name(loaded, member, each.content),
            }
        )
    return rows
