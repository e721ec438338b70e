"""``hpcgen plan``."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, plan_from, print_json, say_findings, say_foreign, with_site
from hpcgen.cli.fact_ages import TODAY, as_data, doubts_of, say_doubts
from hpcgen.cli.licences import say_licences
from hpcgen.cli.options import PlanOptions, plan_options
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo, echo_commands

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan


@click.command("plan")
@plan_options
@click.option("--inputs", is_flag=True, help="List the downloads of the build, and their sources.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole plan, or the inputs, as JSON.")
@click.option("--why", is_flag=True, help="Show all reasons: for each version, and for each number of the job.")
@TODAY
def command(ctx: click.Context, inputs: bool, as_json: bool, why: bool, today: date, options: PlanOptions) -> None:
    """Show every block that would be built, its version, and the job's layout; with --why all reasons."""
    catalog = catalog_of(ctx)
    options = with_site(catalog, options)
    plan = plan_from(ctx, catalog, options)
    if inputs:
        _show_inputs(plan, catalog, as_json)
        return
    doubts = doubts_of(catalog, options.site or plan.site.name, plan, today)
    if as_json:
        # Beside the plan's own fields: what depends on the day is no part of a plan.
        print_json({**msgspec.to_builtins(plan), "doubtful_facts": as_data(doubts, today)})
        return
    from hpcgen.recipe.assemble import assemble, notices

    assembly = assemble(plan, catalog)
    _show(plan, why)
    say_licences(plan)
    say_findings(plan, notices(assembly), assembly.details, notes=options.notes)
    say_doubts(options.site or plan.site.name, doubts, options.notes)
    say_foreign([plan.site])
    folded = not options.notes and (assembly.details or any(each.severity == "detail" for each in plan.findings))
    more = [text for text, there in (("--why: all reasons", not why), ("--notes: all notes", folded)) if there]
    hint = f" ({', '.join(more)})" if more else ""
    echo(f"\nnext{hint}:")
    echo_commands(f"  {_next(plan, options.runner)}")


def _show(plan: Plan, why: bool) -> None:
    """The blocks and the job."""
    from hpcgen.core.support.units import walltime_text
    from hpcgen.launch.job.measured_layouts import layout_text

    builder = any(each.build_only for each in plan.blocks)
    rows = [
        [each.name, each.version]
        + (["build" if each.build_only else "image"] if builder else [])
        + ["; ".join(map(str, each.reasons if why else each.reasons[:1]))]
        for each in plan.blocks
    ]
    where = f"{plan.site.name}, partition {plan.partition}"
    echo(f"{plan.stack.name} for {where}, format {plan.format}, run by {plan.engine}\n")
    echo(table(["block", "version", *(["stage"] * builder), "why"], rows, sys.stdout))
    if plan.copied:
        echo(f"\n{table(['copied to', 'files', 'size', 'sha256'], _copied_rows(plan), sys.stdout)}")
    if plan.stack.run.models:
        echo(f"\n{table(['model', 'files', 'size', 'from', 'seen at'], _model_rows(plan), sys.stdout)}")
    job = plan.job
    queue = f", queue {job.queue}" if job.queue else ""
    echo(f"\njob: {layout_text(job)}, {walltime_text(job.walltime_s)}{queue}")
    for reason in job.why() if why else ():
        echo(f"  {reason}")


def _next(plan: Plan, runner: str | None) -> str:
    """The command that builds the plan; or its kit, where an engine is named, since ``build`` names one that builds."""
    return plan.command.replace(" render ", " build " if runner is None else " render -o kit ", 1)


def _show_inputs(plan: Plan, catalog: Catalog, as_json: bool) -> None:
    from hpcgen.recipe.assemble import assemble
    from hpcgen.recipe.stages import input_list

    rows = input_list(assemble(plan, catalog, listed=True))
    if as_json:
        print_json(rows)
        return
    echo(table(["block", "kind", "name", "from", "pinned by"], [list(each) for each in rows], sys.stdout))


def _copied_rows(plan: Plan) -> list[list[str]]:
    """The stack's own files, an entry a row."""
    from hpcgen.core.support.units import size

    return [[each.to, str(each.files), size(each.bytes), each.sha256] for each in plan.copied]


def _model_rows(plan: Plan) -> list[list[str]]:
    """What is fetched before the job, an entry a row."""
    from hpcgen.core.support.units import size

    return [[each.name, str(len(each.parts)), size(each.bytes), each.from_, each.to] for each in plan.stack.run.models]
