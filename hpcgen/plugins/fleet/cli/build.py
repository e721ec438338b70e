"""``hpcgen build`` of many images, here or as an array of the batch system."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from hpcgen.cli.build_options import NOT_IN_JOB, Approve, BuildCommandOptions, hand_over, job_of_build
from hpcgen.cli.common import catalog_of, option_group, print_json, say, shows_progress
from hpcgen.cli.options import Options, PlanOptions, in_record
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo, echo_commands
from hpcgen.cli.words import COUNT, SITE
from hpcgen.core.errors import HpcgenError, InputError, Problems
from hpcgen.core.support.units import duration
from hpcgen.plugins.fleet.cli.gate import GATE_OPTIONS, gate_of

if TYPE_CHECKING:
    from hpcgen.builders import BuildOptions
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.record import BuildRecord, TestRun
    from hpcgen.kit.folder import KitFolder
    from hpcgen.plugins.fleet.building import BuildSettings, MemberOutcome
    from hpcgen.plugins.fleet.changes import MemberState
    from hpcgen.plugins.fleet.compiled import ArtifactJob, FleetWork
    from hpcgen.plugins.fleet.file import LoadedFleet
    from hpcgen.plugins.fleet.gate import Gate
    from hpcgen.plugins.fleet.severity import Severity
    from hpcgen.running.build_job import BuildJob


class FleetBuildOptions(Options, frozen=True, kw_only=True):
    """Which images of a fleet are built, and whether as an array."""

    every: bool = False
    names: tuple[str, ...] = ()
    fleet_file: Path | None = None
    lock_file: Path | None = None
    force: bool = False
    reports: Path | None = None
    artifacts_only: bool = False
    artifact: tuple[str, ...] = ()
    compiled_before: bool = False
    skip_site_tests: bool = False
    array: bool = False
    limit: int | None = None
    build_on: str | None = None
    advisories: Path | None = None
    fail_on: Severity = "low"

    @property
    def compiles_alone(self) -> bool:
        """Whether blocks are compiled and kept, and no image is built."""
        return self.artifacts_only or bool(self.artifact)


_FILE = click.Path(path_type=Path, dir_okay=False)
_fleet_options = option_group(
    click.option("--all", "every", is_flag=True, help="Build and test the changed images of a fleet."),
    click.option("--member", "names", multiple=True, metavar="NAME", help="Only this member of the fleet; repeatable."),
    click.option("--fleet", "fleet_file", metavar="FILE", type=_FILE, help="The fleet; by default fleet.yaml."),
    click.option(
        "--lock",
        "lock_file",
        metavar="FILE",
        type=_FILE,
        help="The list of the last builds; by default next to the fleet file.",
    ),
    click.option("--force", is_flag=True, help="With --all or --member: unchanged ones too."),
    click.option(
        "--reports",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="With --all or --member: write a JUnit file of each image's tests here.",
    ),
    click.option(
        "--artifacts-only",
        is_flag=True,
        help="With --all or --member: only compile what the --cache folder lacks; build no images.",
    ),
    click.option(
        "--artifact", multiple=True, metavar="BLOCK", help="The same for this block, and what it needs; repeatable."
    ),
    click.option(
        "--compiled-before",
        is_flag=True,
        help="With --all or --member: compile nothing; blocks missing from the --cache folder count as failed.",
    ),
    click.option(
        "--skip-site-tests",
        is_flag=True,
        help="With --all or --member: test no image that needs its site's MPI and names no test_site.",
    ),
    click.option("--array", is_flag=True, help="With --all or --member: as a Slurm array, one task per image."),
    click.option("--limit", type=COUNT, metavar="N", help="With --array: how many tasks may run at once."),
    click.option("--on", "build_on", type=SITE, help="With --array: the site with the batch system that builds."),
    *GATE_OPTIONS,
    in_record(FleetBuildOptions, "fleet"),
)
_OF_MANY = {"fleet_file", "lock_file", "force", "reports", "skip_site_tests", "artifacts_only", "artifact"}
_OF_MANY |= {"compiled_before"}
_FLEET = {*_OF_MANY, "array", "limit", "build_on"}
_OF_JOBS = {"time", "queue", "account"}
_BOTH = {
    "every",
    "names",
    "accept",
    "engine",
    "no_cache",
    "store",
    "notest",
    "emulate",
    "engine_option",
    "dry_run",
    "record",
    "as_json",
    "advisories",
    "fail_on",
}
_FOR_ALL = {"--all": 0, "--member": 1, "--artifacts-only": 0, "--artifact": 1, "--array": 0, "--limit": 1, "--on": 1}
_NOT_IN_TASK = {**NOT_IN_JOB, **_FOR_ALL}


BuildOne = Callable[[click.Context, PlanOptions, BuildCommandOptions], None]


def with_fleets(build_one: BuildOne) -> Callable[..., Any]:
    """What ``hpcgen build`` calls where many images can be asked for, by ``--all`` and ``--member``.

    ``build_one``: what it calls without a fleet.
    """

    @_fleet_options
    @click.pass_context
    @in_record(PlanOptions)
    @in_record(BuildCommandOptions, "build")
    def command(ctx: click.Context, options: PlanOptions, build: BuildCommandOptions, fleet: FleetBuildOptions) -> None:
        if fleet.advisories is None and "fail_on" in _given(ctx):
            raise click.UsageError("--fail-on requires --advisories")
        if fleet.every or fleet.names:
            _check_usage(ctx, fleet.array)
            _check_store(fleet, build)
            _many(ctx, options, fleet, build)
        elif stray := _given(ctx) & _FLEET:
            raise click.UsageError(f"{_option(ctx, stray)} requires --all or --member")
        else:
            if fleet.advisories is not None and build.dockerfile is not None:
                raise click.UsageError("--advisories checks planned images, not what a --dockerfile installs")
            if fleet.advisories is not None:
                build = replace(build, approve=_approve(ctx, fleet.advisories, fleet.fail_on))
            build_one(ctx, options, build)

    return command


def _approve(ctx: click.Context, advisories: Path, level: Severity) -> Approve:
    """The gate of an image that is built alone."""
    from hpcgen.cli.recorded_plan import RecordedPlan
    from hpcgen.kit.folder import read_texts
    from hpcgen.plugins.fleet.gate import judge, read_gate

    gate, catalog = read_gate(advisories, level), catalog_of(ctx)
    locks: list[Lock | None] = []

    def approve(kit: KitFolder, record: BuildRecord | None) -> None:
        if not locks:
            locks.append(RecordedPlan(kit.plan, read_texts(kit)["hpcgen.lock"]).sealed("the kit"))
        image = record.image if record is not None else None
        judge(gate, kit.plan.stack.name, kit.plan, catalog, say, image=image, lock=locks[0])

    return approve


def _given(ctx: click.Context) -> set[str]:
    """Names of the parameters that stand on the command line."""
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in ctx.params if ctx.get_parameter_source(name) is source and ctx.params[name]}


def _option(ctx: click.Context, names: set[str]) -> str:
    """The option of the first of some parameters, as it is typed."""
    return next((each.opts[0] for each in ctx.command.params if each.name in names), "")


def _check_usage(ctx: click.Context, array: bool) -> None:
    allowed = _FLEET | _BOTH | (_OF_JOBS if array else set())
    if stray := _given(ctx) - allowed:
        name = _option(ctx, stray)
        if stray & _OF_JOBS:
            raise click.UsageError(f"{name} requires --array: a build on this machine needs no queue")
        raise click.UsageError(f"{name} cannot be used with --all and --member: the fleet's file has it")
    if not array and (stray := _given(ctx) & {"limit", "build_on"}):
        raise click.UsageError(f"{_option(ctx, stray)} requires --array")


def _check_store(fleet: FleetBuildOptions, build: BuildCommandOptions) -> None:
    if (fleet.compiles_alone or fleet.compiled_before) and build.how.artifacts is None:
        options = "--compiled-before requires" if fleet.compiled_before else "--artifacts-only and --artifact require"
        needed = "--cache DIR, or `artifacts` in your config file, and no --no-cache"
        raise click.UsageError(f"{options} a folder for compiled blocks: {needed}")


# many images


def _many(ctx: click.Context, options: PlanOptions, fleet: FleetBuildOptions, build: BuildCommandOptions) -> None:
    from hpcgen.cli.trust import allow_of
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.gate import refused_plans
    from hpcgen.plugins.fleet.records import read_lock, require_room

    loaded = load_fleet(fleet.fleet_file or Path("fleet.yaml"), ctx.find_root().obj, allow_of(ctx))
    lock = fleet.lock_file or loaded.lock_path
    locked = read_lock(lock)
    states = member_states(loaded, locked, fleet.names, skip_site_tests=fleet.skip_site_tests)
    todo = [each for each in states if each.to_build or fleet.force]
    if len(todo) < len(states):
        say(f"{len(states) - len(todo)} of {len(states)} unchanged")
    if not build.dry_run:
        require_room(lock, locked, [each.member.name for each in todo])
        todo = _accepted(todo, build.accept)
    gate = gate_of(loaded, fleet.advisories, fleet.fail_on)
    refused = refused_plans(gate, todo, loaded.catalog, say) if gate is not None else {}
    todo = [each for each in todo if each.member.name not in refused]
    code = next((each.exit_code for each in refused.values()), 0)
    if fleet.array:
        _array(loaded, todo, options, fleet, build)
        ctx.exit(code)
    from hpcgen.plugins.fleet.building import able_here, build_members, compile_blocks, failed_member

    work = _work(loaded, todo, build, able_here(build.how))
    if fleet.compiles_alone:
        assert work is not None
        ctx.exit(_compile_alone(loaded, work, fleet, build) or code)
    if build.dry_run:
        ctx.exit(_show(loaded, todo, build.how) or code)
    how, lacking = _settings(build.how, fleet.reports, gate), {}
    if work is not None and fleet.compiled_before:
        lacking = work.lacking(work.uncompiled(()))
    elif work is not None:
        lacking = work.lacking(compile_blocks(loaded, list(work.jobs.values()), how))
    outcomes = [failed_member(*each) for each in refused.items()]
    outcomes += build_members(loaded, todo, lock, how, lacking)
    _summary(outcomes, build.as_json)
    ctx.exit(next((each.exit_code for each in outcomes if each.exit_code), 0))


def _accepted(todo: Sequence[MemberState], accept: tuple[str, ...]) -> list[MemberState]:
    """The members with all licences of their plans accepted; asked for, or refused, once for all of them."""
    from hpcgen.cli.licences import require_licences, with_licences

    needed = {each.name: each for state in todo if state.plan is not None for each in state.plan.licences}
    require_licences(list(needed.values()), accept)
    names = (*accept, *needed)
    return [
        replace(state, plan=with_licences(state.plan, names)) if state.plan is not None else state for state in todo
    ]


def _work(
    loaded: LoadedFleet, todo: Sequence[MemberState], build: BuildCommandOptions, able: Callable[[MemberState], bool]
) -> FleetWork | None:
    """What is compiled for all members together, told before it begins; None where nothing is kept."""
    from hpcgen.plugins.fleet.compiled import fleet_work

    if (store := build.how.artifacts) is None:
        return None
    work = fleet_work(loaded, todo, store, able)
    for line in work.told:
        say(line)
    return work


def _compile_alone(loaded: LoadedFleet, work: FleetWork, fleet: FleetBuildOptions, build: BuildCommandOptions) -> int:
    """Compile what the store lacks of what is asked for, or list it; the exit code of the first that failed."""
    from hpcgen.plugins.fleet.building import compile_blocks

    unplanned = [problem for each in work.states for problem in each.problems]
    for problem in unplanned:
        say(f"error: {problem}")
    jobs = work.only(fleet.artifact)
    before = work.uncompiled(fleet.artifact) if fleet.compiled_before else {}
    failed = {} if build.dry_run else compile_blocks(loaded, jobs, _settings(build.how, None), before)
    if build.as_json:
        print_json([{**job.row, "failed": job.block.key in failed} for job in jobs])
    elif build.dry_run and jobs:
        rows = [[str(each.level), each.block.label, each.state.member.name, _took(each)] for each in jobs]
        echo(table(["level", "block", "compiled for", "time"], rows, sys.stdout))
    if not build.dry_run:
        say(f"{len(jobs) - len(failed)} compiled, {len(failed)} failed" if jobs else "nothing to compile")
    return next((each.exit_code for each in failed.values()), InputError.exit_code if unplanned else 0)


def _took(job: ArtifactJob) -> str:
    return "not known" if job.seconds is None else duration(job.seconds)


def _settings(how: BuildOptions, reports: Path | None, gate: Gate | None = None) -> BuildSettings:
    from hpcgen.builders.display import display
    from hpcgen.plugins.fleet.building import BuildSettings

    def report(name: str, image: str, run: TestRun) -> None:
        say(f"{name}: tests: {run.count('passed')} passed, {run.count('failed')} failed, {run.seconds:.0f} s")
        if reports is not None:
            from hpcgen.core.support.writing import write_file
            from hpcgen.running.verify.junit import junit_xml

            reports.mkdir(parents=True, exist_ok=True)
            write_file(reports / f"{name}.xml", junit_xml(run, image))

    return BuildSettings(how, lambda: display(say, shows_progress()), say, report, gate)


def _show(loaded: LoadedFleet, todo: Sequence[MemberState], how: BuildOptions) -> int:
    """The engines' commands; the exit code of the first member that has none."""
    from hpcgen.builders.preparing import commands, prepare
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.core.support.writing import write_kit
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit
    from hpcgen.plugins.fleet.building import options_of

    code = 0
    click.echo("# BUILD is a temporary folder with the files that the recipes copy.")
    for state in todo:
        click.echo(f"# {state.member.name}: {state.reason or state.state}")
        if state.plan is None:
            code = code or InputError.exit_code
            continue
        try:
            with scratch_folder("hpcgen-kit-") as folder:
                write_kit(folder / "kit", make_kit(state.plan, loaded.catalog).all_files)
                prepared = prepare(read_kit(folder / "kit"), options_of(state, how), "0", Path("BUILD"))
                for line in commands(prepared):
                    echo_commands(line)
        except HpcgenError as error:
            code = code or error.exit_code
            for problem in error.problems:
                say(f"error: {state.member.name}: {problem}")
    return code


def _summary(outcomes: Sequence[MemberOutcome], as_json: bool) -> None:
    if as_json:
        print_json(outcomes)
    elif outcomes:
        head = ["name", "result", "time", "tests", "image"]
        rows = [[o.name, o.result, f"{o.seconds:.0f} s", o.tests or "-", o.image or o.message] for o in outcomes]
        echo(table(head, rows, sys.stdout))
    failed = sum(each.result == "failed" for each in outcomes)
    say(f"{len(outcomes) - failed} built, {failed} failed" if outcomes else "nothing to build")


def _array(
    loaded: LoadedFleet,
    todo: Sequence[MemberState],
    options: PlanOptions,
    fleet: FleetBuildOptions,
    build: BuildCommandOptions,
) -> None:
    """One task for each member that can be built there, after those that compile; the others make the exit code."""
    from hpcgen.plugins.fleet.building import array_site, for_others, is_for
    from hpcgen.plugins.fleet.compiled import in_levels

    planned = [each for each in todo if each.plan is not None]
    problems = Problems(problem for each in todo for problem in each.problems)
    if planned:
        site, partition = array_site(loaded, planned, fleet.build_on)
        if others := [each for each in planned if not (build.emulate or is_for(site, each))]:
            problems.append(for_others(site, others))
            planned = [each for each in planned if is_for(site, each)]
        job = job_of_build(site, partition, "build-fleet", _NOT_IN_TASK, options)
        words, job = job.words, replace(job, limit=fleet.limit or 0)
        before = ""
        # Where another engine might compile what one could not, each image tries.
        first = [] if len({(each.format, each.member.engine) for each in planned}) > 1 else ["--compiled-before"]
        if planned and (work := _work(loaded, planned, build, lambda state: True)) is not None:
            # A block that fails keeps no image back but those that need it, which then end at once.
            for number, level in enumerate(in_levels(work.only(fleet.artifact)), 1):
                tasks = {"member": [each.state.member.name for each in level]}
                tasks["artifact"] = [each.block.name for each in level]
                step = replace(job, name=f"compile-fleet-{number}", tasks=tasks)
                before = _submitted(step, level[0].state, build.dry_run, before, in_turn=True)
                job = replace(job, words=[*words, *first])
        if planned and not fleet.compiles_alone:
            job = replace(job, tasks={"member": [each.member.name for each in planned]})
            # A limit is one for all of them, so that they run one after the other.
            before = _submitted(job, planned[0], build.dry_run, before, in_turn=job.limit > 0)
    if not planned:
        say("nothing to build")
    problems.raise_as(InputError)


def _submitted(job: BuildJob, state: MemberState, dry_run: bool, before: str, in_turn: bool) -> str:
    """Hand over an array, in as many as the batch system wants, after a job; the id of the last one.

    ``in_turn``: each after the one before.
    """
    from hpcgen.running.build_job import arrays

    assert state.plan is not None
    for part in arrays(job):
        last = hand_over(replace(part, after=before), state.plan, dry_run, follow=False)
        before = last if in_turn else before
    return last
