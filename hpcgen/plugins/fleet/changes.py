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
    """A member and its plan; ``reason`` says why it is to be built, ``problems`` why it has no plan.

    ``tests``: whether it is tested once it is built.
    """

    member: FleetMember
    state: State
    reason: str = ""
    content: str = ""
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    tests: bool = True

    @property
    def format(self) -> str:
        """Of the recipe; empty where no plan says it."""
        return self.plan.format if self.plan is not None else self.member.format or ""

    @property
    def to_build(self) -> bool:
        """Whether something is to be done; a member without a plan too, which then says what is wrong."""
        return self.state != "unchanged"


def member_states(
    loaded: LoadedFleet,
    locked: Mapping[str, LockedImage],
    names: Sequence[str] = (),
    *,
    skip_site_tests: bool = False,
) -> list[MemberState]:
    """Plan what the members, or those of ``names``, ask for, and compare. A member that has no plan is no exception.

    ``skip_site_tests``: no member is tested that would need its site's MPI, as machines elsewhere do not have it.
    """
    members = [loaded.member(name) for name in names] if names else loaded.members
    answer = functools.cache(functools.partial(_answer, loaded.catalog))
    states = []
    for member in members:
        found = answer(_question(member))
        tests = member.test and not (skip_site_tests and _needs_its_site(member, found, loaded.catalog))
        states.append(_state(found, member, locked.get(member.name), tests))
    return states


def _needs_its_site(member: FleetMember, answer: tuple[Plan, str] | HpcgenError, catalog: Catalog) -> bool:
    """Whether the tests start ranks by what only the site has; ``test_site`` says that another machine is meant."""
    if member.test_site is not None or isinstance(answer, HpcgenError):
        return False
    from hpcgen.planning.contract.verdict import case_of

    return case_of(answer[0], catalog).host is not None


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


def _state(
    answer: tuple[Plan, str] | HpcgenError, member: FleetMember, before: LockedImage | None, tests: bool
) -> MemberState:
    if isinstance(answer, HpcgenError):
        problems = tuple(_placed(each, member) for each in answer.problems)
        return MemberState(member, "no plan", problems[0].message, problems=problems, tests=tests)
    plan, content = answer
    if before is None:
        return MemberState(member, "new", "never built", content, plan, tests=tests)
    reason = _difference(member, plan, content, before, tests)
    return MemberState(member, "changed" if reason else "unchanged", reason, content, plan, tests=tests)


def _difference(member: FleetMember, plan: Plan, content: str, before: LockedImage, tests: bool) -> str:
    if before.content != content:
        return f"the plan was {before.content[:12]}"
    if before.format != plan.format:
        return f"the format was {before.format}"
    if member.engine is not None and before.engine != member.engine:
        return f"built by {before.engine}, not by {member.engine}"
    if tests and not before.tested:
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
                "test": each.tests,
                "state": each.state,
                "reason": each.reason,
                "content": each.content,
                "publish": published_name(loaded, member, each.content),
            }
        )
    return rows
