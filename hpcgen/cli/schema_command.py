"""``hpcgen schema``."""

from __future__ import annotations

import click

KINDS = ("site", "stack", "releases", "fleet", "request", "ensemble", "config")


@click.command("schema")
@click.argument("kind", type=click.Choice(KINDS))
@click.pass_context
def command(ctx: click.Context, kind: str) -> None:
    """Print the JSON Schema of sites, stacks, release tables, fleets, requests, ensembles or config files."""
    from hpcgen.cli.common import catalog_of

    catalog_of(ctx)  # its collections are known to the registries from then on
    click.echo(schema_of(kind), nl=False)


def schema_of(kind: str) -> str:
    """The schema of one kind of file, with the engines, formats and batch systems that the registries know."""
    from hpcgen.backends.engines import ENGINES, builders
    from hpcgen.backends.schedulers import SCHEDULERS, launchers
    from hpcgen.core.config.schemas import schema_text
    from hpcgen.recipe.formats import FORMATS

    names = {registry.folder: registry.names() for registry in (ENGINES, FORMATS, SCHEDULERS)}
    names |= {"builders": sorted({*builders(), *(each.name for each in builders().values())}), "launchers": launchers()}
    return schema_text(kind, names)
