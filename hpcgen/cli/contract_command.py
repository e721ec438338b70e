"""``hpcgen contract``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, plan_from, print_json, say
from hpcgen.cli.licences import licence_option
from hpcgen.cli.options import PlanOptions, plan_options
from hpcgen.cli.tables import table

if TYPE_CHECKING:
    from hpcgen.planning.contract.case import Check

POLICY = 6
"""The exit code of PolicyError."""


@click.command("contract")
@plan_options
@licence_option
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def command(ctx: click.Context, as_json: bool, accept: tuple[str, ...], options: PlanOptions) -> int:
    """Check whether the image will work on the host, before anything is built. Exit 6 if a check fails.

    render, plan, lock and build make the same checks and refuse what is broken.
    """
    from hpcgen.planning.contract.verdict import OVERRULE, case_of, checks_of
    from hpcgen.planning.licences import accepted_here

    catalog = catalog_of(ctx)
    plan = plan_from(ctx, catalog, msgspec.structs.replace(options, allow_unsupported=True), verb="contract")
    checks = checks_of(case_of(plan, catalog, accepted_here(plan.licences, accept)))
    document = catalog.site_document(options.site or plan.site.name)
    places = [str(document.position(each.path.split("."))) if each.path else "" for each in checks]
    broken = [each for each in checks if each.outcome == "broken"]
    if as_json:
        rows = [{**msgspec.structs.asdict(each), "where": where} for each, where in zip(checks, places, strict=True)]
        print_json(rows)
    else:
        where = f"{plan.site.name}, partition {plan.partition}"
        click.echo(f"{plan.stack.name} for {where}, format {plan.format}, run by {plan.engine}\n")
        click.echo(table(["check", "outcome", "why"], [_row(each) for each in checks], sys.stdout))
        for each, where in zip(checks, places, strict=True):
            if each.outcome == "broken":
                say(f"broken: {each.name}{f' ({where})' if where else ''}: {each.remedy or 'see there'}, or {OVERRULE}")
    return POLICY if broken and not options.allow_unsupported else 0


def _row(check: Check) -> list[str]:
    remedy = f" ({check.remedy})" if check.remedy and check.outcome == "doubtful" else ""
    return [check.name, check.outcome, f"{check.reason}{remedy}"]
