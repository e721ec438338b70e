"""``hpcgen explain``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import catalog_of, plan_from, print_json, say
from hpcgen.cli.options import PlanOptions, word_or_plan_options
from hpcgen.cli.project_stack import stack_here
from hpcgen.cli.recorded_plan import named_plan
from hpcgen.cli.terminal import echo, echo_commands
from hpcgen.core.errors import HpcgenError, InputError, Problems, UnknownNameError
from hpcgen.core.model.image_paths import LOCK
from hpcgen.core.support.quoting import command as quoted
from hpcgen.core.support.units import some

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.planning.explain.case import ExplainCase

_FEW = 6


@click.command("explain")
@word_or_plan_options
@click.option("--from", "origin", metavar="KIT|LOCK|IMAGE", help="Explain an existing kit, lock or image.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanations as JSON.")
def command(ctx: click.Context, origin: str | None, as_json: bool, options: PlanOptions) -> None:
    """Say where things in a kit come from: the fact, the stack's line, the block, the rule, and what was refused.

    WORD is a block, BLOCK.OPTION, a variable, a package of Python, conda or the distribution, a folder, a module, a
    fact's path, a line of the job script, or FILE:LINE of the recipe, the job script or selftest.sh; KIT/FILE:LINE
    needs neither --site nor --stack. Without a word, what can be asked for is listed.
    """
    from hpcgen.planning.explain.answers import explain, words
    from hpcgen.planning.explain.case import explanation_text

    given = options.words
    if not given and origin is None and options.site is None and stack_here() is None and _there(options) is None:
        raise click.UsageError(
            "name what to explain, and from what: `hpcgen explain WORD --site NAME --stack NAME`, or with --from KIT"
        )
    case = _case(ctx, origin or _there(options), replace(options, words=()))
    if not given:
        listed = words(case)
        if as_json:
            print_json(listed)
        else:
            _ask_for(listed)
        return
    found, problems = [], Problems()
    for word in given:
        try:
            found += explain(case, word)
        except (UnknownNameError, InputError) as error:
            problems += error.problems
    if problems:
        raise UnknownNameError(problems)
    if as_json:
        print_json(found)
    else:
        echo("\n\n".join(explanation_text(each) for each in found))


def _ask_for(listed: Mapping[str, Sequence[str]]) -> None:
    """Say how to ask, and the first few words of each kind."""
    echo("Ask for one or more of these words, such as:")
    first = [names[0] for names in listed.values()][:2]
    echo_commands(f"  {quoted('hpcgen', *sys.argv[1:], *first)}")
    echo()
    echo("\n".join(f"{kind}: {some(names, _FEW)}" for kind, names in listed.items()))
    echo("\nAlso FILE:LINE of the recipe, the job script or selftest.sh, such as job.slurm:8; --json lists every word.")


def _there(options: PlanOptions) -> str | None:
    """The kit that a word such as KIT/FILE:LINE names, or what the present folder has: a kit, or a project's lock."""
    if options.site is not None or options.stack is not None:
        return None
    folders = [Path(word.rpartition(":")[0]).parent for word in options.words if "/" in word] or [Path()]
    kit = next((str(folder) for folder in folders if (folder / "plan.json").is_file()), None)
    if kit is None and stack_here() is not None and Path(LOCK).is_file():
        say(f"answers come from {LOCK} in this folder; --site makes a new plan")
        return LOCK
    return kit


def _case(ctx: click.Context, origin: str | None, options: PlanOptions) -> ExplainCase:
    """What is to be explained: a plan that is made now, or that of a kit, a lock or an image."""
    from hpcgen.planning.explain.case import ExplainCase

    catalog = catalog_of(ctx)
    if origin is None:
        plan = plan_from(ctx, catalog, options)
        return ExplainCase(plan, catalog, site=options.site, stack=options.stack or stack_here())
    found = named_plan(origin, options)
    own = _own_stack(catalog, found.plan)
    case = ExplainCase(found.plan, catalog, found.sealed(origin), stack=own, artifacts=found.artifacts)
    for name, there in found.files.items():
        if name in case.files and case.files[name] != there:
            raise InputError(
                f"{name} of {origin} differs from a fresh rendering of its plan: "
                f"hpcgen {found.plan.hpcgen} wrote it, the collections changed, or the user edited it",
                remedy="render the kit again and explain the new one",
            )
    return case


def _own_stack(catalog: Catalog, plan: Plan) -> str | None:
    """The stack of the present folder, if the plan is of one of that name."""
    here = stack_here()
    try:
        return here if here is not None and catalog.stack(here).name == plan.stack.name else None
    except HpcgenError:
        return None
