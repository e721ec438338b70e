"""Which members of a fleet need building: the hash of each plan against the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from hpcgen.engines import format_to_build
from hpcgen.errors import HpcgenError, Position, Problem
from hpcgen.fleet.file import FleetMember, LoadedFleet
from hpcgen.model.fleet import LockedImage
from hpcgen.model.plan import Plan

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
    def to_build(self) -> bool:
        """Whether something is to be done; a member without a plan too, which then says what is wrong."""
        return self.state != "unchanged"


def member_states(
    loaded: LoadedFleet, locked: Mapping[str, LockedImage], names: Sequence[str] = ()
) -> list[MemberState]:
    """Plan every member, or those of ``names``, and compare. A member that has no plan is no exception."""
    members = [loaded.member(name) for name in names] if names else loaded.members
    return [_state(loaded, member, locked.get(member.name)) for member in members]


def plan_member(loaded: LoadedFleet, member: FleetMember) -> tuple[Plan, str]:
    """A member's plan and its hash. HpcgenError as make_plan, with the member's place where it has no other."""
    from hpcgen.planning.planner import make_plan
    from hpcgen.recipe.assemble import assemble

    catalog = loaded.catalog
    try:
        site = catalog.site(member.site)
        plan = make_plan(
            catalog,
            site,
            catalog.stack(member.stack),
            partition=member.partition,
            settings=member.settings,
            format=member.format or format_to_build(site.containers.preferred, member.engine),
            allow_unsupported=member.allow_unsupported,
            site_document=catalog.site_document(member.site),
            stack_document=catalog.stack_document(member.stack),
        )
        return plan, assemble(plan, catalog).labels["io.hpcgen.content"]
    except HpcgenError as error:
        raise type(error)([_placed(each, member) for each in error.problems]) from error


def _placed(problem: Problem, member: FleetMember) -> Problem:
    where = problem.where if isinstance(problem.where, Position) else member.place
    return Problem(f"{member.name}: {problem.message}", where, problem.expected, problem.remedy)


def _state(loaded: LoadedFleet, member: FleetMember, before: LockedImage | None) -> MemberState:
    try:
        plan, content = plan_member(loaded, member)
    except HpcgenError as error:
        return MemberState(member, "no plan", error.problems[0].message, problems=error.problems)
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
                "format": plan.format if plan is not None else member.format or "",
                "engine": member.engine or "",
                "test": member.test,
                "state": each.state,
                "reason": each.reason,
                "content": each.content,
                "publish": published_name(loaded, member, each.content),
            }
        )
    return rows
