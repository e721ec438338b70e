"""``hpcgen check``."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, say_foreign
from hpcgen.cli.fact_ages import TODAY, say_old, say_unverified
from hpcgen.cli.trust import allow_of
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.support.units import some

if TYPE_CHECKING:
    from hpcgen.core.config.yamlfile import Document


@click.command("check")
@click.argument("files", nargs=-1, metavar="[FILE|DIR]...", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON on stdout.")
@TODAY
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], as_json: bool, today: date) -> None:
    """Check site profiles, recipes, release tables and blocks: every mistake at once, with file:line:column.

    DIR is a collection, of which everything is checked; without an argument, the one that comes with hpcgen. A block is
    loaded and tried in a process of its own, once you trust its collection.
    """
    from hpcgen.catalog.trust import folder_offered
    from hpcgen.cli.checking import check_file, code_of, collected_files, collection_of
    from hpcgen.core.config.provenance import sourced_of
    from hpcgen.core.support.quoting import line
    from hpcgen.machine.ages import doubtful

    problems = Problems()
    shipped = catalog_of(ctx).folders[-1].resolve()
    files = files or (shipped,)
    folders = [path for path in files if path.is_dir()]
    own = dict.fromkeys(code_of(path) for path in files if path in folders or path.suffix == ".py")
    allow_of(ctx)([folder_offered(folder, "hpcgen check") for folder in own])
    catalog = catalog_of(ctx, map(collection_of, folders))
    every: list[Path] = []
    for path in files:
        with problems.caught():
            every += collected_files(path) if path in folders else [path]
    for path in every:
        with problems.caught():
            profiles: list[Document] = []
            sites = check_file(catalog, path, allow_of(ctx), profiles)
            for profile in profiles:
                check_dates(profile, path.resolve().is_relative_to(shipped))
            say(f"{path}: ok")
            for profile in profiles:
                found = doubtful(sourced_of(profile), today)
                say_old(str(path), found.old, not profile.data.get("abstract"))
                say_unverified(found, f"hpcgen show site {line([str(path)])} --origin --unverified")
            if path in files:
                say_foreign(sites)
    # What is wrong with a parent is told of each of its children.
    problems = Problems(dict.fromkeys(problems))
    if as_json:
        rows = [
            {"where": str(p.where or ""), "message": p.message, "expected": p.expected, "remedy": p.remedy}
            for p in problems
        ]
        print_json(rows)
    problems.raise_as(InputError)


def check_dates(profile: Document, shipped: bool) -> None:
    """InputError where a verified fact of a profile that comes with hpcgen has no date; of others it is only told."""
    from hpcgen.catalog.checks import UNDATED, undated

    missing = undated(profile)
    if shipped:
        Problems(missing.values()).raise_as(InputError)
    elif missing:
        first = next(iter(missing.values())).where
        say(f"warning: {first}: verified, but of no date: {some([*missing])} ({UNDATED})")
