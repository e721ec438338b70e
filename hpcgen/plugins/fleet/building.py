"""Compile what members of a fleet share, build them here one after the other, test each, and lock what is good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from hpcgen.core.errors import BuildFailedError, HpcgenError, InputError, Problem, TestFailedError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import BuildRecord, TestRun
from hpcgen.core.model.site import Site
from hpcgen.core.support.units import some
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.file import LoadedFleet, build_site
from hpcgen.plugins.fleet.gate import Gate, judge
from hpcgen.plugins.fleet.records import LockedImage, update_lock

if TYPE_CHECKING:
    from hpcgen.builders import BuildOptions, Watcher
    from hpcgen.plugins.fleet.compiled import ArtifactJob


class MemberOutcome(msgspec.Struct, frozen=True):
    """What became of one member: ``seconds`` of building and testing; ``image`` as KIND:NAME."""

    name: str
    result: Literal["built", "failed"]
    seconds: float
    image: str = ""
    tests: str = ""
    message: str = ""
    exit_code: int = 0


class BuildSettings(msgspec.Struct, frozen=True):
    """``options`` of each build; ``watcher`` makes what is told of one.

    ``report`` is told of each test run: the member, its image, the results. ``gate``: what advisories keep back, of
    images; plans are judged before, see :func:`~hpcgen.plugins.fleet.gate.refused_plans`.
    """

    options: BuildOptions
    watcher: Callable[[], Watcher]
    say: Callable[[str], None]
    report: Callable[[str, str, TestRun], None]
    gate: Gate | None = None


def able_here(options: BuildOptions) -> Callable[[MemberState], bool]:
    """Whether this machine can build a member, by its processor and engines; each engine is asked once."""
    from hpcgen.backends.hardware.emulation import check_architecture
    from hpcgen.builders.choosing import choose_builder

    known: dict[tuple[str, ...], bool] = {}

    def able(state: MemberState) -> bool:
        plan = state.plan
        if plan is None:
            return False
        engine = state.member.engine or options.engine
        base = plan.base.kind if plan.base is not None else ""
        asked = (plan.site.system.architecture, plan.format, plan.engine, plan.supply, base, engine or "")
        if asked not in known:
            try:
                check_architecture(plan.site, options.emulate)
                choose_builder(plan, engine)
                known[asked] = True
            except HpcgenError:
                known[asked] = False
        return known[asked]

    return able


def compile_blocks(
    loaded: LoadedFleet,
    jobs: Sequence[ArtifactJob],
    how: BuildSettings,
    lacking: Mapping[str, HpcgenError] | None = None,
) -> dict[str, HpcgenError]:
    """Compile what the store lacks, going on after a failure: what went wrong, by key.

    What needs a block that could not be compiled is not tried.

    ``lacking``: what could not be compiled before, and why.
    """
    before = lacking or {}
    from hpcgen.builders.artifacts.making import stored_artifacts

    failed: dict[str, HpcgenError] = {}
    for number, job in enumerate(jobs, 1):
        block, plan = job.block, job.state.plan
        assert plan is not None
        how.say(f"{block.label}, {number} of {len(jobs)} to compile: for {job.state.member.name}")
        try:
            for needed in block.needs.values():
                if (error := failed.get(needed) or before.get(needed)) is not None:
                    raise error
            options = options_of(job.state, how.options)
            stored_artifacts(plan, loaded.catalog, None, options, how.watcher(), only=block.name)
        except HpcgenError as error:
            for problem in error.problems:
                how.say(f"error: {problem}")
            failed[block.key] = error
    return failed


def build_members(
    loaded: LoadedFleet,
    states: Sequence[MemberState],
    lock: Path,
    how: BuildSettings,
    lacking: Mapping[str, HpcgenError],
) -> Iterator[MemberOutcome]:
    """Build each, going on after a failure; what is built, and tested where it is to be, goes into the lock at once.

    ``lacking``: members that are not built, since what they need could not be compiled, and why.
    """
    for number, state in enumerate(states, 1):
        name = state.member.name
        how.say(f"{name}, {number} of {len(states)}: {state.reason or state.state}")
        begun = time.monotonic()
        try:
            if name in lacking:
                raise lacking[name]
            record, run = _build_one(loaded, state, how)
            locked = _locked(record, run)
            update_lock(lock, {name: locked})
        except HpcgenError as error:
            for problem in error.problems:
                how.say(f"error: {problem}")
            yield failed_member(name, error, time.monotonic() - begun)
            continue
        tests = "not requested" if not state.member.test else "not here: they need the site's MPI"
        tests = f"{run.count('passed')} passed" if run is not None else tests
        yield MemberOutcome(name, "built", time.monotonic() - begun, locked.image, tests)


def failed_member(name: str, error: HpcgenError, seconds: float = 0.0) -> MemberOutcome:
    """What became of a member that was not built."""
    message = error.problems[0].message.partition("\n")[0]
    return MemberOutcome(name, "failed", seconds, message=message, exit_code=error.exit_code)


def _build_one(loaded: LoadedFleet, state: MemberState, how: BuildSettings) -> tuple[BuildRecord, TestRun | None]:
    from hpcgen.builders import build_image
    from hpcgen.builders.artifacts.making import with_artifacts
    from hpcgen.kit.kit import make_kit

    plan = state.plan
    if plan is None:
        raise BuildFailedError(state.problems)
    options, watcher = options_of(state, how.options), how.watcher()
    options = with_artifacts(plan, loaded.catalog, None, state.content, options, watcher)
    record = build_image(make_kit(plan, loaded.catalog), options, watcher)
    if how.gate is not None:
        judge(how.gate, state.member.name, plan, loaded.catalog, how.say, image=record.image)
    run = _tested(loaded, state, record, how) if state.tests else None
    return record, run


def options_of(state: MemberState, options: BuildOptions) -> BuildOptions:
    """The options of one member's build: its engine, and its own name for the image."""
    assert state.plan is not None
    member = state.member
    engine = member.engine or options.engine
    return msgspec.structs.replace(options, engine=engine, output=output_of(state.plan, member.name))


def output_of(plan: Plan, name: str) -> str:
    """Where a member's image goes: under its own name, as two members may have one stack.

    A file lies where the job script would look for the stack's image.
    """
    from hpcgen.backends.engines import builder_of, job_image

    return job_image(plan, name) if builder_of(plan.engine).image_is_file else f"{name}:latest"


def _tested(loaded: LoadedFleet, state: MemberState, record: BuildRecord, how: BuildSettings) -> TestRun:
    """Test what was built; TestFailedError with what failed."""
    from hpcgen.builders.records.store import tried_test_run
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.verify import failed, verify_image

    image = record.image
    assert image is not None
    name = state.member.test_site
    site = loaded.catalog.site(name) if name is not None else None
    # What it starts by is the plan that was just built, of the user's own profile.
    run = verify_image(ImageReference(image.kind, image.name, start=True), loaded.catalog, trust=True, site=site)
    if how.options.record:
        tried_test_run(record, run, how.say)
    how.report(state.member.name, image.name, run)
    wrong = failed(run)
    if wrong:
        told = ((f"{each.group}: {each.name}", f" ({each.reason})" if each.reason else "") for each in wrong)
        raise TestFailedError(
            Problem(f"{state.member.name}: test failed: {test}{why}", remedy="hpcgen test IMAGE shows its output")
            for test, why in told
        )
    return run


def _locked(record: BuildRecord, run: TestRun | None) -> LockedImage:
    image = record.image
    assert image is not None
    return LockedImage(
        content=record.content,
        format=record.format,
        engine=record.engine,
        tested=run is not None,
        image=f"{image.kind}:{image.name}",
        digest=image.digest,
    )


def is_for(site: Site, state: MemberState) -> bool:
    """Whether a member's image is for processors as those of a site."""
    return state.plan is not None and state.plan.site.system.architecture == site.system.architecture


def for_others(site: Site, states: Sequence[MemberState]) -> Problem:
    """Why nodes of a site cannot build these members: their images are for other processors."""
    names = [each.member.name for each in states]
    message = f"the nodes of {site.name} are {site.system.architecture}, and {some(names)} are for other processors"
    remedy = f"submit them separately: --member {names[0]} --on SITE, of a site with such nodes; or add --emulate"
    return Problem(message, states[0].member.place, remedy=remedy)


def array_site(loaded: LoadedFleet, states: Sequence[MemberState], asked: str | None) -> tuple[Site, str]:
    """The site whose batch system builds, and its kind of node.

    ``--on`` wins, then the fleet's ``build_on``; without both it is the members' site, if all have the same.

    InputError: the members are for several sites. PolicyError: see :func:`hpcgen.running.build_job.check_site`.
    """
    from hpcgen.running.build_job import check_site

    name = asked or build_site(loaded)
    if name is None:
        sites = sorted({state.member.site for state in states})
        if len(sites) > 1:
            message = f"the members are for {', '.join(sites)}: which of them builds?"
            where = loaded.document.position()
            raise InputError(message, where, remedy="add `build_on: SITE` to the fleet, or --on SITE")
        name = sites[0]
    site = loaded.catalog.site(name)
    check_site(site, loaded.catalog.site_document(name))
    return site, site.default_partition
