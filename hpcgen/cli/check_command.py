"""``hpcgen check``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, say_foreign
from hpcgen.cli.trust import allow_of
from hpcgen.core.errors import InputError, Problems


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON on stdout.")
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Check site profiles, recipes, release tables and blocks: every mistake at once, with file:line:column.

    DIR is a collection, of which everything is checked. A block is loaded and tried in a process of its own, once you
    trust its collection.
    """
    from hpcgen.catalog.trust import folder_offered
    from hpcgen.cli.checking import check_file, code_of, collected_files, collection_of

    problems = Problems()
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
            sites = check_file(catalog, path, allow_of(ctx))
            say(f"{path}: ok")
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
