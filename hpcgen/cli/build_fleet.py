"""``hpcgen build`` of many images, and builds as jobs of the batch system."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import (
    catalog_of,
    named_kit,
    option_group,
    plan_from,
    print_json,
    say,
    shows_progress,
)
from hpcgen.cli.locked import plan_of_lock
from hpcgen.cli.options import Options, PlanOptions, in_record
from hpcgen.cli.tables import table
from hpcgen.cli.words import COUNT, SITE
from hpcgen.core.errors import HpcgenError, InputError, Problems

if TYPE_CHECKING:
    from hpcgen.builders import BuildOptions
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import TestRun
    from hpcgen.core.model.site import Site
    from hpcgen.plugins.fleet.build_job import BuildJob
    from hpcgen.plugins.fleet.building import MemberOutcome
    from hpcgen.plugins.fleet.changes import MemberState
    from hpcgen.plugins.fleet.file import LoadedFleet


class FleetBuildOptions(Options, frozen=True, kw_only=True):
    """Which images of a fleet are built, and whether as jobs."""

    submit: bool = False
    no_follow: bool = False
    every: bool = False
    names: tuple[str, ...] = ()
    fleet_file: Path | None = None
    lock_file: Path | None = None
    force: bool = False
    reports: Path | None = None
    array: bool = False
    limit: int | None = None
    build_on: str | None = None


_FILE = click.Path(path_type=Path, dir_okay=False)
fleet_build_options = option_group(
    click.option("--submit", is_flag=True, help="Build as a job of the site's batch system, and follow it."),
    click.option("--no-follow", is_flag=True, help="With --submit: print the job's id and do not wait for it."),
    click.option("--all", "every", is_flag=True, help="Build and test the changed images of a fleet."),
    click.option("--member", "names", multiple=True, metavar="NAME", help="Only this member of the fleet; repeatable."),
    click.option("--fleet", "fleet_file", metavar="FILE", type=_FILE, help="The fleet; by default fleet.yaml."),
    click.option(
        "--lock",
        "lock_file",
        metavar="FILE",
        type=_FILE,
        help="The list of images that were last built; by default next to the fleet file.",
    ),
    click.option("--force", is_flag=True, help="With --all or --member: unchanged ones too."),
    click.option(
        "--reports",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="With --all or --member: write a JUnit file of each image's tests here.",
    ),
    click.option("--array", is_flag=True, help="With --all or --member: as a Slurm array, one task per image."),
    click.option("--limit", type=COUNT, metavar="N", help="With --array: how many tasks may run at once."),
    click.option("--on", "build_on", type=SITE, help="With --array: the site whose batch system builds."),
    in_record(FleetBuildOptions, "fleet"),
)
"""Options of fleets and of builds as jobs; the command gets them as ``fleet: FleetBuildOptions``."""
_FLEET = {"fleet_file", "lock_file", "force", "reports", "array", "limit", "build_on"}
_OF_JOBS = {"time", "queue", "account"}
_BOTH = {"every", "names", "accept", "engine", "no_cache", "notest", "engine_option", "dry_run", "record", "as_json"}
_NOT_IN_JOB = {"--submit": 0, "--no-follow": 0, "--dry-run": 0, "--time": 1, "--queue": 1, "--account": 1}
_NOT_IN_TASK = {**_NOT_IN_JOB, "--all": 0, "--member": 1, "--array": 0, "--limit": 1, "--on": 1}


def fleet_build(
    ctx: click.Context,
    options: PlanOptions,
    fleet: FleetBuildOptions,
    how: BuildOptions,
    dry_run: bool,
    as_json: bool,
    accept: tuple[str, ...] = (),
) -> bool:
    """Do what ``--all``, ``--member`` and ``--submit`` ask for; False if none of them is there.

    Parameters
    ----------
    how: how each image is built.
    accept: licences that are accepted on the command line.
    """
    if fleet.every or fleet.names:
        _check_usage(ctx, fleet.array)
        _many(ctx, options, fleet, how, dry_run, as_json, accept)
        return True
    given = _given(ctx)
    if stray := given & _FLEET:
        raise click.UsageError(f"{_option(ctx, stray)} requires --all or --member")
    if fleet.no_follow and not fleet.submit:
        raise click.UsageError("--no-follow requires --submit")
    if fleet.submit:
        _submit(ctx, options, dry_run, fleet.no_follow, accept)
    return fleet.submit


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
            raise click.UsageError(f"{name} requires --array: an image that is built right here needs no queue")
        raise click.UsageError(f"{name} cannot be used with --all and --member: the fleet's file has it")
    if not array and (stray := _given(ctx) & {"limit", "build_on"}):
        raise click.UsageError(f"{_option(ctx, stray)} requires --array")


# many images


def _many(
    ctx: click.Context,
    options: PlanOptions,
    fleet: FleetBuildOptions,
    how: BuildOptions,
    dry_run: bool,
    as_json: bool,
    accept: tuple[str, ...],
) -> None:
    from hpcgen.cli.trust import allow_of
    from hpcgen.plugins.fleet.changes import member_states
    from hpcgen.plugins.fleet.file import load_fleet
    from hpcgen.plugins.fleet.lock import read_lock, require_room

    loaded = load_fleet(fleet.fleet_file or Path("fleet.yaml"), ctx.find_root().obj, allow_of(ctx))
    lock = fleet.lock_file or loaded.lock_path
    locked = read_lock(lock)
    states = member_states(loaded, locked, fleet.names)
    todo = [each for each in states if each.to_build or fleet.force]
    if len(todo) < len(states):
        say(f"{len(states) - len(todo)} of {len(states)} did not change")
    if not dry_run:
        require_room(lock, locked, [each.member.name for each in todo])
        todo = _accepted(todo, accept)
    if fleet.array:
        _array(loaded, todo, options, fleet, dry_run)
        return
    if dry_run:
        ctx.exit(_show(loaded, todo, how))
    outcomes = list(_built(loaded, todo, lock, how, fleet.reports))
    _summary(outcomes, as_json)
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


def _built(
    loaded: LoadedFleet, todo: Sequence[MemberState], lock: Path, how: BuildOptions, reports: Path | None
) -> Iterator[MemberOutcome]:
    from hpcgen.builders.display import display
    from hpcgen.plugins.fleet.building import BuildSettings, build_members

    def report(name: str, image: str, run: TestRun) -> None:
        say(f"{name}: tests: {run.count('passed')} passed, {run.count('failed')} failed, {run.seconds:.0f} s")
        if reports is not None:
            from hpcgen.core.support.writing import write_file
            from hpcgen.running.verify.junit import junit_xml

            reports.mkdir(parents=True, exist_ok=True)
            write_file(reports / f"{name}.xml", junit_xml(run, image))

    settings = BuildSettings(how, lambda: display(say, shows_progress()), say, report)
    return build_members(loaded, todo, lock, settings)


def _show(loaded: LoadedFleet, todo: Sequence[MemberState], how: BuildOptions) -> int:
    """The engines' commands; the exit code of the first member that has none."""
    from hpcgen.builders.running import commands, prepare
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
                    click.echo(line)
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
        click.echo(table(head, rows, sys.stdout))
    failed = sum(each.result == "failed" for each in outcomes)
    say(f"{len(outcomes) - failed} built, {failed} failed" if outcomes else "nothing to build")


# builds as jobs


def _array(
    loaded: LoadedFleet,
    todo: Sequence[MemberState],
    options: PlanOptions,
    fleet: FleetBuildOptions,
    dry_run: bool,
) -> None:
    """One task for each member that has a plan; the others are told, and make the exit code."""
    from hpcgen.plugins.fleet.build_job import arrays
    from hpcgen.plugins.fleet.queued import array_site

    planned = {each.member.name: each.plan for each in todo if each.plan is not None}
    if planned:
        site, partition = array_site(loaded, [each for each in todo if each.plan is not None], fleet.build_on)
        job = _job(site, partition, "build-fleet", _NOT_IN_TASK, options)
        job = replace(job, members=list(planned), limit=fleet.limit or 0)
        before = ""
        for part in arrays(job):
            # A limit is one for all of them, so that they run one after the other.
            part = replace(part, after=before if job.limit else "")
            before = _hand_over(part, next(iter(planned.values())), dry_run, follow=False)
    else:
        say("nothing to build")
    Problems(problem for each in todo for problem in each.problems).raise_as(InputError)


def _submit(ctx: click.Context, options: PlanOptions, dry_run: bool, no_follow: bool, accept: tuple[str, ...]) -> None:
    from hpcgen.cli.licences import require_licences
    from hpcgen.plugins.fleet.build_job import check_site

    plan = _plan(ctx, options)
    check_site(plan.site)
    if not dry_run:
        require_licences(plan.licences, accept)
    job = _job(plan.site, plan.partition, f"build-{plan.stack.name}", _NOT_IN_JOB, options)
    _hand_over(job, plan, dry_run, follow=not no_follow)


def _plan(ctx: click.Context, options: PlanOptions) -> Plan:
    """The plan of the kit or of the options: what cannot be planned is not worth a place in the queue."""
    locked, bundle = ctx.params["locked"], ctx.params["bundle"]
    of_plan = replace(options, time=None, queue=None, account=None)
    if locked is not None or (bundle is not None and not of_plan.words):
        return plan_of_lock(ctx, locked, bundle, of_plan, ctx.params["engine"])[1]
    if (kit := named_kit(of_plan)) is not None:
        return kit.plan
    return plan_from(ctx, catalog_of(ctx), replace(of_plan, command=of_plan.words))


def _job(site: Site, partition: str, name: str, left_out: dict[str, int], options: PlanOptions) -> BuildJob:
    """The job that calls this command again, without some of its options."""
    from hpcgen.core.config.user_config import account_for
    from hpcgen.core.model.job import JobRequest
    from hpcgen.plugins.fleet.build_job import BuildJob
    from hpcgen.running.own_job import passed_on, without_options

    account = account_for(site, options.account)
    return BuildJob(
        site=site,
        partition=partition,
        name=name,
        words=without_options(sys.argv[1:], left_out),
        folder=Path.cwd(),
        request=JobRequest(walltime=options.time, queue=options.queue, account=account),
        environment=passed_on(os.environ),
    )


def _hand_over(job: BuildJob, plan: Plan, dry_run: bool, follow: bool) -> str:
    """Print the script, or submit it and follow the job; its id, or a word for it where the script is only shown."""
    if dry_run:
        from hpcgen.plugins.fleet.build_job import build_script

        click.echo(build_script(job)[1], nl=False)
        return "JOB-ID"
    from hpcgen.cli.submit_command import followed
    from hpcgen.plugins.fleet.queued import submit_build
    from hpcgen.running.follow import failure

    submitted = submit_build(job, plan)
    say(f"job {submitted.id} submitted with {submitted.script}")
    if not follow:
        say(submitted.hint)
        click.echo(submitted.id)
        return submitted.id
    result = followed(submitted)
    if not result.good:
        raise failure(result, submitted.queue)
    say(f"job {result.id} succeeded")
    return submitted.id
