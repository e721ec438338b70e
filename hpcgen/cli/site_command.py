"""``hpcgen site``: what an administrator does with a profile."""

from __future__ import annotations

import click

from hpcgen.cli import LazyCommands

COMMANDS = {
    "new": "Write a profile from what this machine shows.",
    "capture": "Copy what detection reads into a small folder.",
    "doctor": "Compare a profile with the machine it runs on.",
    "show": "Show a profile, and where each fact is from.",
    "schema": "Print the JSON Schema of profiles.",
}


class _SiteCommands(LazyCommands):
    """What is done with profiles."""

    table = COMMANDS
    module = "hpcgen.cli.site_{}"


@click.group("site", cls=_SiteCommands)
def command() -> None:
    """Write, show and check site profiles."""
