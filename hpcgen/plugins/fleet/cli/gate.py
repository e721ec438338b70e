"""Options by which advisories keep images back, of ``hpcgen build`` and ``hpcgen fleet``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH

if TYPE_CHECKING:
    from hpcgen.plugins.fleet.file import LoadedFleet
    from hpcgen.plugins.fleet.gate import Gate
    from hpcgen.plugins.fleet.severity import Severity

GATE_OPTIONS = (
    click.option(
        "--advisories",
        metavar="FILE|FOLDER",
        type=PATH,
        help="Refuse images affected by these advisories (OSV files); exit 13 if that is unknown.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["low", "medium", "high", "critical"]),
        default="low",
        show_default=True,
        help="With --advisories: the lowest severity that counts.",
    ),
)


def gate_of(loaded: LoadedFleet, advisories: Path | None, level: Severity) -> Gate | None:
    """The gate of a fleet with its exceptions; None where no advisories are named."""
    if advisories is None:
        return None
    from hpcgen.plugins.fleet.gate import read_gate

    return read_gate(advisories, level, loaded.fleet.advisory_exceptions)
