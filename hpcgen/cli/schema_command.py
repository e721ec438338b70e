"""``hpcgen schema``."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("kind", type=click.Choice(["site", "stack", "releases", "fleet", "request", "ensemble", "config"]))
@click.pass_context
def command(ctx: click.Context, kind: str) -> None:
    """Print the JSON Schema of sites, stacks, release tables, fleets, requests, ensembles or config files."""
    from hpcgen.cli.common import catalog_of
    from hpcgen.config.schemas import schema_text
    from hpcgen.engines import ENGINES, builders
    from hpcgen.recipe.formats import FORMATS
    from hpcgen.schedulers import SCHEDULERS, launchers

    catalog_of(ctx)  # its collections are known to the registries from then on
    names = {registry.folder: registry.names() for registry in (ENGINES, FORMATS, SCHEDULERS)}
    names |= {"builders": list(builders()), "launchers": launchers()}
    click.echo(schema_text(kind, names), nl=False)
