"""``hpcgen shell``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hpcgen.cli.common import print_json, say
from hpcgen.cli.job_options import JobCommand, JobOptions, asked_words, job_data, job_from, job_options, with_live


@click.command("shell", cls=JobCommand)
@job_options
@click.option("--live", is_flag=True, help="Show the project's own files instead of those copied into the image.")
@click.option("--json", "as_json", is_flag=True, help="Print the command that would be started as JSON; start nothing.")
def command(ctx: click.Context, live: bool, as_json: bool, options: JobOptions) -> None:
    """A shell in IMAGE, here or with --nodes or --queue on a node; a COMMAND is started in its place.

    The present folder is seen inside, and the shell starts in it.
    """
    from hpcgen.running.here import failure, notes, own_status
    from hpcgen.running.shell import SHELL, shell_words, with_terminal

    on_node = options.nodes is not None or options.queue is not None
    job = job_from(ctx, options, start=True, batch=on_node)
    if not job.image:
        raise click.UsageError("give an IMAGE: a shell needs a built image", ctx)
    if live:
        job = with_live(ctx, job, options)
    if not on_node:
        for note in notes(job, os.environ):
            say(f"note: {note}")
    words = asked_words(ctx)
    started = shell_words(job, Path.cwd(), words or SHELL, on_node=on_node)
    if as_json:
        print_json({**job_data(job), "words": started})
        return
    say(f"a shell in {job.image or job.plan.stack.name} on {job.plan.site.name}; exit ends it")
    status = with_terminal(started, Path.cwd())
    # A shell ends with the status of its last command, which its user has seen.
    if status and (words or own_status(status)):
        raise failure(job, status)
