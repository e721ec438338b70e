"""``hpcgen list``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.tables import table
from hpcgen.core.errors import HpcgenError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog

KINDS = {"sites": "site", "stacks": "stack", "blocks": "block"}
FACTS = ("facts", "verified", "unverified", "without_source")


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--origin", is_flag=True, help="Show the file that each one comes from.")
@click.option("--facts", is_flag=True, help="Sites: how many facts each has, and how many are verified.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@click.pass_context
def command(ctx: click.Context, kind: str, origin: bool, facts: bool, as_json: bool) -> None:
    """List sites, stacks or blocks with a line about each."""
    from hpcgen.cli.describe import one_line

    if facts and kind != "sites":
        raise click.UsageError("--facts is only for sites")
    catalog = catalog_of(ctx)
    entries: list[dict[str, Any]] = []
    for name in catalog.names(KINDS[kind]):
        try:
            title = one_line(catalog, KINDS[kind], name)
        except HpcgenError as error:
            # One broken file must not hide the others.
            say(f"warning: {error.problems[0]}")
            title = "(cannot be read)"
        counts = _counts(catalog, name) if facts else {}
        entries.append({"name": name, **counts, "title": title, "origin": str(catalog.find(KINDS[kind], name))})
    if as_json:
        print_json(entries)
        return
    columns = ["name", *(FACTS if facts else ()), "title", *(["origin"] if origin else ())]
    rows = [[str(entry.get(column, "-")) for column in columns] for entry in entries]
    click.echo(table([column.replace("_", " ") for column in columns], rows, sys.stdout))


def _counts(catalog: Catalog, name: str) -> dict[str, int]:
    """How many facts of a profile are known how; empty for one that cannot be read."""
    from hpcgen.core.config.provenance import counts, sourced_of

    try:
        found: dict[str, int] = msgspec.to_builtins(counts(sourced_of(catalog.site_document(name))))
    except HpcgenError:
        return {}
    return found
