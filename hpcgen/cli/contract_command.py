"""``hpcgen contract``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from hpcgen.cli.common import START, catalog_of, job_request, plan_from, print_json, say, say_findings
from hpcgen.cli.image_to_read import image_to_read
from hpcgen.cli.licences import licence_option
from hpcgen.cli.options import PlanOptions, optional_plan_options
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import IMAGE

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.planning.contract.case import Check

POLICY = 6
"""The exit code of PolicyError."""


@click.command("contract")
@optional_plan_options
@licence_option
@click.option("--image", type=IMAGE, help="Check this image by its contents; any image will do.")
@START
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def command(
    ctx: click.Context,
    image: str | None,
    start: bool,
    as_json: bool,
    accept: tuple[str, ...],
    options: PlanOptions,
) -> int:
    """Check whether an image will work on the host: before anything is built, or with --image. Exit 6 if a check fails.

    render, plan, lock and build make the same checks and refuse what is broken; run, submit and job those of images.
    """
    from hpcgen.planning.contract.verdict import OVERRULE, case_of, checks_of
    from hpcgen.planning.licences import accepted_here

    catalog = catalog_of(ctx)
    if image is not None:
        plan, checks = _of_image(ctx, catalog, image, start, options)
        what = image
    else:
        plan = plan_from(ctx, catalog, replace(options, allow_unsupported=True), verb="contract")
        checks = checks_of(case_of(plan, catalog, accepted_here(plan.licences, accept)))
        what = plan.stack.name
    document = catalog.site_document(options.site or plan.site.name)
    places = [str(document.position(each.path.split("."))) if each.path else "" for each in checks]
    broken = [each for each in checks if each.outcome == "broken"]
    if as_json:
        rows = [{**msgspec.structs.asdict(each), "where": where} for each, where in zip(checks, places, strict=True)]
        print_json(rows)
    else:
        where = f"{plan.site.name}, partition {plan.partition}"
        echo(f"{what} for {where}, format {plan.format}, run by {plan.engine}\n")
        echo(table(["check", "outcome", "why"], [_row(each) for each in checks], sys.stdout))
        for each, where in zip(checks, places, strict=True):
            if each.outcome == "broken":
                say(f"broken: {each.name}{f' ({where})' if where else ''}: {each.remedy or 'see there'}, or {OVERRULE}")
    return POLICY if broken and not options.allow_unsupported else 0


def _of_image(
    ctx: click.Context, catalog: Catalog, image: str, start: bool, options: PlanOptions
) -> tuple[Plan, list[Check]]:
    """The plan by which an image is started, and its checks; on two nodes where the site has a batch system."""
    from hpcgen.backends.schedulers import scheduler_for
    from hpcgen.planning.contract.verdict import AT_START, case_of_plan, checks_of
    from hpcgen.running.foreign import foreign_checks
    from hpcgen.running.image_job import plan_for_image

    for option, given in (("--stack", options.stack), ("--set", options.settings), ("--add", options.added)):
        if given:
            raise click.UsageError(f"{option} is for an image that is still to be built: omit it or --image", ctx)
    site = catalog.site(options.site) if options.site is not None else None
    request = job_request(options, options.account, list(options.command))
    if site is not None and request.nodes is None and scheduler_for(site.scheduler).takes_jobs:
        request = replace(request, nodes=2)
    with image_to_read(image, start, site.system.architecture if site is not None else "") as found:
        job = plan_for_image(
            found,
            catalog,
            site=site,
            partition=options.partition,
            request=request,
            engine=options.runner,
            elsewhere=True,
            allow_unsupported=True,
            converted=True,
            signed=False,
        )
    if job.facts is None:
        return job.plan, checks_of(case_of_plan(job.plan), only=AT_START)
    said = [finding for finding in job.plan.findings if finding.name in ("MPI", "image", "entry point")]
    say_findings(replace(job.plan, findings=said), notes=options.notes)
    return job.plan, foreign_checks(job.plan, job.facts, catalog)


def _row(check: Check) -> list[str]:
    remedy = f" ({check.remedy})" if check.remedy and check.outcome == "doubtful" else ""
    return [check.name, check.outcome, f"{check.reason}{remedy}"]
