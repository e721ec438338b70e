"""The option by which commands take files that describe a system, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, Decorator, ask
from hpcgen.cli.personal import somebody_there

if TYPE_CHECKING:
    from hpcgen.machine.detect.seen import Seen

KINDS = ("pbs", "reframe", "slurm", "spack", "stackinator")
"""The keys of ``hpcgen.machine.site_sources.sources.SOURCES``, which are not imported to show a help."""


def sources_option(text: str) -> Decorator:
    """``--from KIND PATH``, as often as wanted, with its help."""
    kind = (click.Choice(KINDS), PATH)
    return click.option("--from", "sources", nargs=2, type=kind, multiple=True, metavar="KIND PATH", help=text)


def read_files(sources: Sequence[tuple[str, Path]], system: str, run_settings: bool = False) -> list[Seen]:
    """What each of the files says.

    system: which system is meant, where a file has several.
    run_settings: a settings file that computes things may be run; else the user is asked on a terminal.
    InputError: with what is wrong in any of them.
    """
    from hpcgen.machine.site_sources.said import SourceSettings
    from hpcgen.machine.site_sources.sources import read_sources

    def may_run(file: str, why: str) -> bool:
        if run_settings or not somebody_there():
            return run_settings
        ask(f"{file} computes some of its values ({why}); they are known only if it is run, as Python with your rights")
        return click.confirm("Run it?", default=False, err=True)

    return read_sources(sources, SourceSettings(system, may_run))
