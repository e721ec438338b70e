"""``hpcgen schema``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from hpcgen.cli.plugged import SCHEMAS

RECORDS: Mapping[str, str] = {
    "site": "hpcgen.core.model.site:Site",
    "stack": "hpcgen.core.model.stack:Stack",
    "releases": "hpcgen.core.model.release:ReleaseTable",
    **SCHEMAS,
    "config": "hpcgen.core.model.user_config:UserConfig",
}
"""Into what each kind of file is read."""
KINDS = tuple(RECORDS)


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
    from hpcgen.backends.launchers import launcher_names
    from hpcgen.backends.schedulers import SCHEDULERS
    from hpcgen.core.config.schemas import schema_text
    from hpcgen.core.support.registry import load_target
    from hpcgen.recipe.formats import FORMATS

    names = {registry.folder: registry.names() for registry in (ENGINES, FORMATS, SCHEDULERS)}
    names |= {
        "builders": sorted({*builders(), *(each.name for each in builders().values())}),
        "launchers": launcher_names(),
    }
    return schema_text(load_target(RECORDS[kind]), names)
