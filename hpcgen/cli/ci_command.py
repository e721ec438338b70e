"""``hpcgen ci``: what other programs for testing take."""

from __future__ import annotations

import click

from hpcgen.cli import LazyCommands

COMMANDS = {
    "gitlab": "Write the GitLab pipeline of a fleet.",
    "github": "Write the GitHub workflow of a fleet.",
    "reframe": "Write the tests of an image as ReFrame checks.",
}


class _CiCommands(LazyCommands):
    """Pipelines, which are one module, and checks."""

    table = COMMANDS
    module = "hpcgen.cli.ci_{}"


@click.group("ci", cls=_CiCommands)
def command() -> None:
    """Write pipelines that build a fleet, and checks that test an image."""
