"""``hpcgen check``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.errors import InputError, Problems


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON on stdout.")
@click.pass_context
def command(ctx: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Check site profiles, recipes and release tables: every mistake at once, with file:line:column."""
    from hpcgen.cli.checking import check_file

    catalog = catalog_of(ctx)
    problems = Problems()
    for path in files:
        with problems.caught():
            check_file(catalog, path)
            say(f"{path}: ok")
    if as_json:
        rows = [
            {"where": str(p.where or ""), "message": p.message, "expected": p.expected, "remedy": p.remedy}
            for p in problems
        ]
        print_json(rows)
    problems.raise_as(InputError)
