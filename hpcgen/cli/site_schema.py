"""``hpcgen site schema``."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of site profiles, which also lies in the package as schemas/site.json."""
    from hpcgen.config.schemas import schema_text

    click.echo(schema_text("site"), nl=False)
