"""``hpcgen uninstall``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import print_json, say
from hpcgen.cli.install_command import PREFIX, absolute


@click.command("uninstall")
@click.argument("name", required=False)
@PREFIX
@click.option("--force", is_flag=True, help="Remove files that were changed since, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the removed files as JSON.")
def command(name: str | None, prefix: Path, force: bool, as_json: bool) -> None:
    """Remove what hpcgen install wrote below a prefix for NAME, and nothing else.

    Without NAME, what is installed there if it is one. The image itself stays.
    """
    from hpcgen.running.install.prefix import uninstall

    place = absolute(prefix)
    installed, removed = uninstall(place, name, force=force)
    if as_json:
        print_json({"prefix": str(place), "name": installed.name, "removed": [str(path) for path in removed]})
        return
    for path in removed:
        click.echo(path)
    say(f"{installed.name} removed from {place}; its image stays: {installed.image}")
