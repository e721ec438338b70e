"""``hpcgen run``."""

from __future__ import annotations

import os
from typing import Any

import click

from hpcgen.cli.common import say
from hpcgen.cli.job_options import JobCommand, job_from, job_options


@click.command("run", cls=JobCommand)
@job_options
def command(ctx: click.Context, **asked: Any) -> None:
    """Start IMAGE right here, as the site starts it, and wait until it ends."""
    from hpcgen.run.here import notes, run_here

    job = job_from(ctx, batch=False, **asked)
    for note in notes(job, os.environ):
        say(f"note: {note}")
    run_here(job)
