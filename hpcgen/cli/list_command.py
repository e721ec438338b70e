"""``hpcgen list``."""

from __future__ import annotations

import sys

import click

from hpcgen.cli.common import catalog_of, say
from hpcgen.errors import HpcgenError

KINDS = {"sites": "site", "stacks": "stack", "blocks": "block"}


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--origin", is_flag=True, help="Show the file that each one comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@click.pass_context
def command(ctx: click.Context, kind: str, origin: bool, as_json: bool) -> None:
    """List sites, stacks or blocks with a line about each."""
    from hpcgen.cli.describe import one_line

    catalog = catalog_of(ctx)
    entries = []
    for name in catalog.names(KINDS[kind]):
        try:
            title = one_line(catalog, KINDS[kind], name)
        except HpcgenError as error:
            # One broken file must not hide the others.
            say(f"warning: {error.problems[0]}")
            title = "(cannot be read)"
        entries.append({"name": name, "title": title, "origin": str(catalog.find(KINDS[kind], name))})
    if as_json:
        import json

        click.echo(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    from hpcgen.cli.tables import table

    columns = ["name", "title", "origin"] if origin else ["name", "title"]
    click.echo(table(columns, [[entry[column] for column in columns] for entry in entries], sys.stdout))
