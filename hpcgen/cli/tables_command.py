"""``hpcgen tables``: for those who maintain release tables."""

from __future__ import annotations

import click

from hpcgen.cli import LazyCommands

COMMANDS = {"refresh": "Compare release tables with the index, Spack and EasyBuild."}


class _TablesCommands(LazyCommands):
    table = COMMANDS
    module = "hpcgen.cli.tables_{}"


@click.group("tables", cls=_TablesCommands)
def command() -> None:
    """Keep the release tables of building blocks true."""
