"""``hpcgen render``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import (
    PATH,
    SIGNER,
    catalog_of,
    plan_from,
    print_json,
    required_signers,
    say,
    say_findings,
    shown_files,
)
from hpcgen.cli.licences import say_licences
from hpcgen.cli.options import PlanOptions, optional_plan_options

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan


@click.command("render")
@optional_plan_options
@click.option(
    "--locked",
    metavar="FILE",
    type=PATH,
    help="Render this lock, with everything that it pins: the same bytes everywhere, without a network.",
)
@click.option(
    "--bundle",
    metavar="DIR",
    type=PATH,
    help="Render the lock in this bundle, for a build that takes everything from the bundle.",
)
@SIGNER
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=PATH,
    help="Write the whole kit to this folder: recipe, build script, job script, self-test, lock.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the kit as JSON: file name, text, executable.")
def command(
    ctx: click.Context,
    output: Path | None,
    as_json: bool,
    locked: Path | None,
    bundle: Path | None,
    signers: Path | None,
    options: PlanOptions,
) -> None:
    """Write the recipe of a stack for a site to stdout, or the whole kit with -o DIR."""
    lock = None
    required_signers(ctx)
    if locked is not None or bundle is not None:
        from hpcgen.cli.recorded_plan import plan_of_lock

        catalog, plan, lock = plan_of_lock(ctx, locked, bundle, options)
    else:
        catalog = catalog_of(ctx)
        plan = plan_from(ctx, catalog, options)
    if output is None and not as_json:
        _recipe_only(plan, catalog, lock, options.notes)
        return
    from hpcgen.kit.kit import make_kit, store_kit

    kit = make_kit(plan, catalog, lock)
    if output is not None:
        store_kit(output, kit.all_files)
        say(f"wrote {shown_files(kit.all_files)} to {output}")
    if as_json:
        files = {name: {"text": file.text, "executable": file.executable} for name, file in kit.files.items()}
        print_json(files)
    say_licences(plan)
    say_findings(plan, kit.notices, kit.details, notes=options.notes)


def _recipe_only(plan: Plan, catalog: Catalog, lock: Lock | None, notes: bool) -> None:
    from hpcgen.recipe.assemble import assemble, notices
    from hpcgen.recipe.formats import format_for

    assembly = assemble(plan, catalog) if lock is None else assemble(plan, catalog, lock.pins, lock.content)
    click.echo(format_for(plan.format).recipe(plan, assembly).text, nl=False)
    say("building requires the kit's other files, too: render with -o DIR")
    if plan.copied:
        say("the files that the stack copies are in a kit only")
    say_licences(plan)
    say_findings(plan, notices(assembly), assembly.details, notes=notes)
