"""``hpcgen site schema``."""

from __future__ import annotations

import click


@click.command("schema")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the JSON Schema of site profiles, which also lies in the package as schemas/site.json."""
    from hpcgen.cli.schema_command import print_schema

    print_schema(ctx, "site")
