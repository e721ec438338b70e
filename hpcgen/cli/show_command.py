"""``hpcgen show``."""

from __future__ import annotations

import click

from hpcgen.cli.common import catalog_of, print_json
from hpcgen.cli.words import NAMED


@click.command("show")
@click.argument("kind", type=click.Choice(["site", "stack", "block"]))
@click.argument("name", type=NAMED)
@click.option(
    "--origin", is_flag=True, help="Show the file that it comes from; for a site, file, line and source of each fact."
)
@click.option("--unverified", is_flag=True, help="For a site, with --origin: only facts that are not verified.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def command(ctx: click.Context, kind: str, name: str, origin: bool, unverified: bool, as_json: bool) -> None:
    """Show one site (parents merged in), stack, or block with its options and releases."""
    if unverified and (kind != "site" or not origin):
        raise click.UsageError("--unverified requires --origin, and is only for sites")
    catalog = catalog_of(ctx)
    if kind == "site" and origin:
        from hpcgen.cli.facts import show_facts

        show_facts(catalog, name, unverified, as_json)
        return
    from hpcgen.cli.describe import described

    path = catalog.find(kind, name)
    data = described(catalog, kind, name)
    if as_json:
        print_json({"origin": str(path), **data} if origin else data)
        return
    from hpcgen.core.support.writing import yaml_text

    if origin:
        click.echo(f"# {path}")
    click.echo(yaml_text(data, blocks=True), nl=False)
