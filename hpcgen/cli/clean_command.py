"""``hpcgen clean``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.personal import somebody_there
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import SITE

if TYPE_CHECKING:
    from hpcgen.builders.kept import KeptThings

KINDS = ("images", "build-cache", "unfinished", "cache", "jobs", "models")


@click.command("clean")
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS), metavar=f"[{'|'.join(KINDS)}]...")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=7,
    show_default=True,
    metavar="DAYS",
    help="Only job files unchanged, and models unused, for this long.",
)
@click.option("--site", type=SITE, help="Whose scratch has the models; by default that of this folder or config file.")
@click.option(
    "--account", metavar="NAME", default="", help="The account, where the site's scratch has a folder for each."
)
@click.option("--yes", is_flag=True, help="Remove what is listed without asking.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON; removes nothing without --yes.")
@click.pass_context
def command(
    ctx: click.Context,
    kinds: tuple[str, ...],
    days: float,
    site: str | None,
    account: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """List what hpcgen and the engines keep for it, with sizes, and remove it when you agree. Exit 1 if some stays.

    \b
    images       those without a name, which a newer build replaced
    build-cache  steps and stages of builds: the next build runs them again
    unfinished   what killed commands left; bundles in this folder, which else go on from there
    cache        what hpcgen makes again when it needs it
    jobs         scripts and outputs of this folder's jobs, in .hpcgen/jobs
    models       only if named: what `data fetch` fetched and this folder's stack does not name

    Images with a name, kits, locks, bundles and build records stay.
    """
    from hpcgen.builders.kept import kept_things, remove_kept

    found = [things for things in kept_things(days) if not kinds or things.kind in kinds]
    if "models" in kinds:
        found += [things for things in [_models(ctx, days, site, account)] if things.names]
    if as_json and (dry_run or not yes):
        print_json(found)
        return 0
    if not as_json:
        if not found:
            say("nothing to remove")
            return 0
        rows = [[each.kind, each.about, str(len(each.names)), _size(each.bytes), each.place] for each in found]
        echo(table(["kind", "what", "count", "size", "where"], rows, sys.stdout))
        unknown = ", without what has no known size" if any(each.bytes is None for each in found) else ""
        say(f"in all {_size(sum(each.bytes or 0 for each in found))}{unknown}; `hpcgen records` has the built images")
        if dry_run or not (yes or _agreed()):
            return 0
    left = {position: remove_kept(things) for position, things in enumerate(found)}
    if as_json:
        print_json([{**asdict(things), "left": left[position]} for position, things in enumerate(found)])
    for position, things in enumerate(found):
        if left[position]:
            say(f"warning: {things.place}: not removed: in use, or not yours: {', '.join(left[position])}")
    gone = sum(len(things.names) - len(left[position]) for position, things in enumerate(found))
    say(f"removed {gone} of {sum(len(things.names) for things in found)}")
    return 1 if any(left.values()) else 0


def _models(ctx: click.Context, days: float, site: str | None, account: str) -> KeptThings:
    """Models and data sets where jobs of this folder look for them, without those that its stack names."""
    from hpcgen.builders.kept import kept_models
    from hpcgen.cli.project_stack import own_stack, usual_site
    from hpcgen.core.model.hub_cache import cache_name, hub_repositories
    from hpcgen.running.models import store_folder

    catalog = catalog_of(ctx)
    stack = own_stack(catalog, None)
    models = stack.run.models if stack is not None else []
    named = {each.folder for each in models} | {cache_name(hub_repositories(models))}
    chosen = site or usual_site(catalog, None, say)
    if chosen is None:
        raise click.UsageError("--site is missing: of which site are the models? `hpcgen list sites` shows them")
    return kept_models(store_folder(catalog.site(chosen), account, os.environ, Path.cwd()), days, named)


def _agreed() -> bool:
    if not somebody_there():
        say("nothing is removed: --yes removes all of it")
        return False
    return click.confirm("Remove all of it?", default=False, err=True)


def _size(count: int | None) -> str:
    from hpcgen.core.support.units import size

    return size(count) if count is not None else "not known"
