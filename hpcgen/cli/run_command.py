"""``hpcgen run`` and ``hpcgen submit``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import PATH, START, print_json, say
from hpcgen.cli.data_command import fetched
from hpcgen.cli.job_options import (
    JobCommand,
    JobOptions,
    QueueingOptions,
    job_data,
    job_from,
    job_options,
    queueing_from,
    queueing_options,
    with_live,
)

if TYPE_CHECKING:
    from hpcgen.running.follow import JobResult
    from hpcgen.running.submission import Submitted


@click.command("run", cls=JobCommand)
@job_options
@click.option("--live", is_flag=True, help="Show the project's own files instead of those copied into the image.")
@click.option("--json", "as_json", is_flag=True, help="Print how it ended as JSON; its own output goes to stderr.")
def command(ctx: click.Context, live: bool, as_json: bool, options: JobOptions) -> None:
    """Start IMAGE right here, as the site starts it, and wait until it ends."""
    from hpcgen.running.here import failure, notes, run_to_end

    job = job_from(ctx, options, start=True, batch=False)
    job = with_live(ctx, job, options) if live else job
    fetched(job.plan, Path.cwd())
    for note in notes(job, os.environ):
        say(f"note: {note}")
    try:
        ended = run_to_end(job, sys.stderr if as_json else None)
    except KeyboardInterrupt:
        say("stopped: the program was ended; its output is kept, and the same command starts it again")
        raise
    if as_json:
        print_json({**job_data(job), "exit_status": ended.exit_status, "seconds": ended.seconds})
    if ended.exit_status:
        raise failure(job, ended.exit_status)


@click.command("submit", cls=JobCommand)
@job_options
@queueing_options
@START
@click.option(
    "--folder",
    metavar="DIR",
    default=".",
    type=PATH,
    help="Where the job starts, with its script and output in .hpcgen/jobs below; by default the current folder.",
)
@click.option(
    "--output",
    metavar="FILE",
    default="",
    help="Where the job's output goes, with the batch system's own patterns; by default beside its script.",
)
@click.option("--no-follow", is_flag=True, help="Print the job's id and do not wait for it.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the job's output goes to stderr.")
def submit(
    ctx: click.Context,
    folder: Path,
    output: str,
    no_follow: bool,
    as_json: bool,
    queued: QueueingOptions,
    start: bool,
    options: JobOptions,
) -> None:
    """Submit IMAGE as a job of the site and follow it: its state, its output, its end."""
    from hpcgen.running.image_record import another_image
    from hpcgen.running.submission import submit

    queueing = queueing_from(queued)
    job = replace(job_from(ctx, options, start), queueing=queueing)
    fetched(job.plan, folder)
    if changed := another_image(job, folder):
        say(f"note: {changed}")
    submitted = submit(job, folder, output)
    say(f"job {submitted.id} submitted with {submitted.script}")
    if queueing.tasks is not None:
        say(f"an array is not followed: {submitted.hint}")
    if no_follow or queueing.tasks is not None:
        _print_id(submitted, as_json)
        return
    result = followed(submitted, to_stderr=as_json)
    if as_json:
        print_json(result)
    if not result.good:
        from hpcgen.running.follow import failure

        raise failure(result, submitted.queue)
    took = f" after {result.elapsed_s} s" if result.elapsed_s is not None else ""
    say(f"job {result.id} succeeded{took}; output: {' '.join(result.output) or 'none'}")


def _print_id(submitted: Submitted, as_json: bool) -> None:
    if as_json:
        data = {"id": submitted.id, "name": submitted.name, "script": str(submitted.script)}
        print_json(data)
    else:
        click.echo(submitted.id)


def followed(submitted: Submitted, to_stderr: bool = False) -> JobResult:
    """How the job ended; a Ctrl-C leaves it to itself, and says how to find it again."""
    from hpcgen.running.follow import Follower

    try:
        return Follower(submitted, say, to_stderr=to_stderr).follow()
    except KeyboardInterrupt:
        say(f"job {submitted.id} continues: {submitted.hint}")
        say(f"its files: {submitted.script.parent}")
        raise
