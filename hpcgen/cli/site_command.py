"""``hpcgen site``: what an administrator does with a profile."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "new": "Write a profile from what this machine shows.",
    "capture": "Copy what detection reads into a small folder.",
    "doctor": "Compare a profile with the machine it runs on.",
    "show": "Show a profile, and where each fact is from.",
    "schema": "Print the JSON Schema of profiles.",
}


class _SiteCommands(click.Group):
    """Imports a subcommand when it is used, not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hpcgen.cli.site_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("site", cls=_SiteCommands)
def command() -> None:
    """Write, show and check site profiles."""
