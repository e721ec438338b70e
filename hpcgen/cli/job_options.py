"""What ``run``, ``submit`` and ``job`` share: their options, how a job is queued, and the job that they ask for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import TRUST, catalog_of, job_request, option_group, plan_from, say, say_findings
from hpcgen.cli.options import CHARGE, DATA, LAYOUT, NOTES, Options, PlanOptions, in_record
from hpcgen.cli.project_stack import (
    PROJECT,
    WITHOUT,
    changed_since,
    image_here,
    nothing_built,
    site_missing,
    stack_folder,
    stack_here,
    usual_site,
)
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import BLOCK, COUNT, IMAGE, PARTITION, QUEUE, SETTING, SITE, STACK, EngineChoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.job import JobRequest, Queueing
    from hpcgen.core.model.site import Site
    from hpcgen.core.model.stack import Stack
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.image_job import ImageJob


# The options of ``submit`` and ``job`` that say how a job is queued.

_ARRAY = re.compile(r"([1-9]\d{0,6})(?:%([1-9]\d{0,6}))?")


class QueueingOptions(Options, frozen=True, kw_only=True):
    """How a job is queued, as the command line says it."""

    after: str = ""
    array: str | None = None
    checkpoint: str | None = None
    requeue: bool = False


queueing_options = option_group(
    click.option("--after", metavar="JOB", default="", help="Begin when this job has ended, however it ends."),
    click.option(
        "--array",
        metavar="N[%M]",
        help="An array of N tasks, of which M run at a time; $HPCGEN_TASK numbers them from 0. Not followed.",
    ),
    click.option(
        "--checkpoint",
        metavar="TIME",
        help="Run the stack's checkpoint command this long before the time limit, such as 5m.",
    ),
    click.option("--requeue", is_flag=True, help="Requeue the job after its checkpoint, and if a node fails."),
    in_record(QueueingOptions, "queued"),
)
"""A command gets them as ``queued: QueueingOptions``."""


def queueing_from(queued: QueueingOptions) -> Queueing:
    """What these options ask for; wrong usage where one cannot be read."""
    from hpcgen.core.model.job import Queueing
    from hpcgen.core.support.units import parse_walltime

    tasks, at_once = _array(queued.array) if queued.array is not None else (None, None)
    checkpoint_s = parse_walltime(queued.checkpoint, "--checkpoint") if queued.checkpoint is not None else None
    return Queueing(after=queued.after, tasks=tasks, at_once=at_once, checkpoint_s=checkpoint_s, requeue=queued.requeue)


def _array(text: str) -> tuple[int, int | None]:
    """How many tasks, and how many of them at a time."""
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a number of tasks, such as 10 or 10%2", param_hint="--array")
    return int(found[1]), int(found[2]) if found[2] else None


_WORDS = "hpcgen.words"


class JobCommand(click.Command):
    """A command whose words after ``--`` are a command of their own, whatever stands before."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words off before the options are read."""
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_WORDS] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Say so in the help."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


class JobOptions(PlanOptions, frozen=True, kw_only=True):
    """How an image is started, or what is planned to be started instead."""

    image: str | None = None
    trust_image: bool = False
    engine: str | None = None
    explain: bool = False
    keep_cache: bool = False


job_options = option_group(
    click.argument("image", required=False, type=IMAGE),
    click.option("--site", type=SITE, help="Another site than the image's, or your own profile of it."),
    TRUST,
    click.option(
        "--stack", type=STACK, help=f"Plan this stack, or {PROJECT} of this folder, instead of an image's plan."
    ),
    click.option("--set", "settings", multiple=True, type=SETTING, help="With --stack: as in render."),
    click.option("--add", "added", multiple=True, type=BLOCK, help="With --stack: as in render."),
    click.option("--partition", type=PARTITION, help="Kind of node."),
    click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one."),
    click.option("--nodes", type=COUNT, help="Nodes; ranks and threads follow the site's layouts."),
    LAYOUT,
    click.option("--queue", type=QUEUE, help="Scheduler partition or queue."),
    CHARGE,
    DATA,
    click.option(
        "--stage",
        type=click.Choice(["auto", "node", "none"]),
        help="Whether to copy the image file to each node first; auto: if size × nodes is large.",
    ),
    click.option(
        "--allow-unsupported", is_flag=True, help="With --stack, or an image that hpcgen did not build: go on."
    ),
    NOTES,
    click.option(
        "--keep-cache", is_flag=True, help="Keep what programs compile at run time for the next job of this image."
    ),
    click.option("--explain", is_flag=True, help="Show which layouts and queues were considered, and why."),
    click.pass_context,
    in_record(JobOptions),
)
"""The options of every command that starts something, which gets them as ``options: JobOptions``."""


def job_from(ctx: click.Context, options: JobOptions, start: bool, batch: bool = True) -> ImageJob:
    """The job that the command line asks for; findings, and with ``--explain`` the reasons, are said on stderr.

    ``start``: the image may be started to be read. ``batch``: it goes to the batch system, so that accounts matter, and
    what is installed here does not.
    """
    from hpcgen.catalog.secret_texts import check_request

    request = job_request(options, options.account, ctx.meta.get(_WORDS))
    if batch:
        check_request(request)
    job = replace(_job(ctx, request, options, batch, start), keep_cache=options.keep_cache)
    _say_findings(job, batch, options.notes)
    if options.explain:
        _explain(job, request)
    return job


def planned_job(ctx: click.Context, options: JobOptions) -> ImageJob:
    """The same without a word of it, for what comes before the job."""
    return _job(ctx, job_request(options, options.account, None), options, batch=True, start=True)


def asked_words(ctx: click.Context) -> list[str]:
    """The words after ``--``."""
    return [*(ctx.meta.get(_WORDS) or [])]


def with_live(ctx: click.Context, job: ImageJob, options: JobOptions) -> ImageJob:
    """The job with the user's own files in the place of those that the stack copied into the image."""
    from hpcgen.running.shell import hidden_by, live_binds

    name = options.stack or stack_here()
    if name is None:
        raise click.UsageError(f"--live shows the files of a project: {WITHOUT}", ctx)
    catalog = catalog_of(ctx)
    stack = catalog.stack(name)
    binds = live_binds(stack, stack_folder(catalog, name))
    if not binds:
        raise click.UsageError(f"--live: {name} copies nothing into the image", ctx)
    if hidden := hidden_by(stack, binds):
        say(f"warning: --live hides build results in {hidden}: rebuild them there, or omit --live")
    say("live: " + ", ".join(f"{bind.source} instead of {bind.target}" for bind in binds))
    return replace(job, shown=(*job.shown, *binds))


def job_data(job: ImageJob) -> dict[str, object]:
    """Which image is started where, and how large the job is, as JSON has it."""
    plan = job.plan
    where = {"stack": plan.stack.name, "site": plan.site.name, "partition": plan.partition, "engine": plan.engine}
    # What is the default is said too: programs should not have to know it.
    size = {name: getattr(plan.job, name) for name in plan.job.__struct_fields__ if name != "reasons"}
    data = {"binds": plan.stack.run.binds} if plan.stack.run.binds else {}
    return {"image": job.image, **where, **data, "job": {**size, "reasons": plan.job.why()}}


def _say_findings(job: ImageJob, batch: bool, notes: bool) -> None:
    findings = [finding for finding in job.plan.findings if batch or finding.name != "account"]
    say_findings(replace(job.plan, findings=findings), notes=notes)
    from hpcgen.backends.schedulers import scheduler_for

    if batch and job.named and scheduler_for(job.plan.site.scheduler).takes_jobs:
        say(f"note: {job.image} is in a store of this machine; a compute node may have another")


def _job(ctx: click.Context, request: JobRequest, options: JobOptions, batch: bool, start: bool) -> ImageJob:
    if options.image is None and options.stack is None and (here := stack_here()) is not None:
        return _of_this_folder(ctx, request, options, here, batch)
    reference = _reference(options.image, start)
    if options.stack is not None:
        return _planned_anew(ctx, request, reference, options, batch)
    for option, given in (("--set", options.settings), ("--add", options.added)):
        if given:
            raise click.UsageError(f"{option} requires --stack: the contents of an image can no longer be changed", ctx)
    if reference is None:
        raise click.UsageError(f"give an IMAGE, or --site and --stack; {WITHOUT}", ctx)
    catalog = catalog_of(ctx)
    site = catalog.site(options.site) if options.site is not None else None
    here = stack_here()
    beside = (lambda: catalog.stack(here)) if here is not None else None
    job = _of_image(catalog, reference, site, request, options, batch, beside=beside)
    if options.allow_unsupported and not job.foreign:
        raise click.UsageError("--allow-unsupported requires --stack: an existing image is started as it is", ctx)
    return job


def _of_this_folder(ctx: click.Context, request: JobRequest, options: JobOptions, here: str, batch: bool) -> ImageJob:
    """The job of the image that was built last from this folder's stack; without one, of the stack for a site."""
    from hpcgen.catalog.catalog import is_file_name

    catalog = catalog_of(ctx)
    changes = options.settings or options.added or options.allow_unsupported
    image = None if changes else image_here(catalog, options.site, say)
    if image is None:
        site = options.site or usual_site(catalog, here, say)
        if site is None:
            raise site_missing(catalog, here) if changes else nothing_built()
        return _planned_anew(ctx, request, None, replace(options, stack=here, site=site), batch)
    name = options.site
    # It is an image for that site: the user's profile of its name is taken, and its job stays as it was asked for.
    profile = catalog.site(name) if name is not None and is_file_name(name) else None
    job = _of_image(catalog, image, profile, request, options, batch, catalog.stack(here))
    if changed := changed_since(catalog, job.plan):
        say(f"warning: changed since that was built: {changed} (build it again: hpcgen build)")
    return job


def _of_image(
    catalog: Catalog,
    image: ImageReference,
    site: Site | None,
    request: JobRequest,
    options: JobOptions,
    batch: bool,
    stack: Stack | None = None,
    beside: Callable[[], Stack] | None = None,
) -> ImageJob:
    from hpcgen.core.config.user_config import account_for
    from hpcgen.running.image_job import plan_for_image

    return plan_for_image(
        image,
        catalog,
        trust=options.trust_image,
        site=site,
        partition=options.partition,
        request=request,
        engine=options.engine,
        account=lambda here: account_for(here, None, stack),
        elsewhere=batch,
        stack=stack,
        beside=beside,
        data=options.data(),
        allow_unsupported=options.allow_unsupported,
    )


def _reference(image: str | None, start: bool) -> ImageReference | None:
    if image is None:
        return None
    from hpcgen.images.reference import parse_image

    return parse_image(image, start)


def _planned_anew(
    ctx: click.Context, request: JobRequest, image: ImageReference | None, options: JobOptions, batch: bool
) -> ImageJob:
    from hpcgen.running.image_job import plan_for_stack

    catalog = catalog_of(ctx)
    plan = plan_from(ctx, catalog, replace(options, command=tuple(request.command or ())), unchecked=("network",))
    data = options.data(stack_folder(catalog, options.stack or PROJECT))
    return plan_for_stack(plan, catalog, image, options.engine, batch, data)


def _explain(job: ImageJob, request: JobRequest) -> None:
    from hpcgen.launch.job.measured_layouts import explain

    plan = job.plan
    wanted = plan.job
    shape = f"{wanted.nodes} × {wanted.ranks_per_node} × {wanted.threads_per_rank}"
    say(f"nodes × ranks × threads: {shape}, by {plan.engine} on {plan.site.name}, {plan.partition}")
    for line in [*wanted.why(), *explain(plan.site, plan.partition, plan.stack, wanted, request)]:
        echo(f"  {line}", err=True)
