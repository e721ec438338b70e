"""``hpcgen run``."""

from __future__ import annotations

import os
import sys

import click

from hpcgen.cli.common import print_json, say
from hpcgen.cli.job_options import JobCommand, JobOptions, job_data, job_from, job_options


@click.command("run", cls=JobCommand)
@job_options
@click.option("--json", "as_json", is_flag=True, help="Print how it ended as JSON; its own output goes to stderr.")
def command(ctx: click.Context, as_json: bool, options: JobOptions) -> None:
    """Start IMAGE right here, as the site starts it, and wait until it ends."""
    from hpcgen.running.here import failure, notes, run_to_end

    job = job_from(ctx, options, start=True, batch=False)
    for note in notes(job, os.environ):
        say(f"note: {note}")
    ended = run_to_end(job, sys.stderr if as_json else None)
    if as_json:
        print_json({**job_data(job), "exit_status": ended.exit_status, "seconds": ended.seconds})
    if ended.exit_status:
        raise failure(job, ended.exit_status)
