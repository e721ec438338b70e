"""``hpcgen schema``."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("kind", type=click.Choice(["site", "stack", "releases", "fleet", "config"]))
def command(kind: str) -> None:
    """Print the JSON Schema of site profiles, stack recipes, release tables, fleets or config files."""
    from hpcgen.config.schemas import schema_text

    click.echo(schema_text(kind), nl=False)
