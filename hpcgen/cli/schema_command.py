"""``hpcgen schema``."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("kind", type=click.Choice(["site", "stack", "releases", "fleet", "config"]))
def command(kind: str) -> None:
    """Print the JSON Schema of site profiles, stack recipes, release tables, fleets or config files."""
    import json

    from hpcgen.model.fleet import Fleet
    from hpcgen.model.release import ReleaseTable
    from hpcgen.model.site import Site
    from hpcgen.model.stack import Stack
    from hpcgen.model.user_config import UserConfig
    from hpcgen.typed import schema

    types: dict[str, type] = {
        "site": Site,
        "stack": Stack,
        "releases": ReleaseTable,
        "fleet": Fleet,
        "config": UserConfig,
    }
    click.echo(json.dumps(schema(types[kind]), indent=2, ensure_ascii=False))
