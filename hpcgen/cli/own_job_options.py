"""The options of commands that can have themselves done as a job of the site, and that job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import option_group, say
from hpcgen.cli.words import QUEUE

if TYPE_CHECKING:
    from hpcgen.run.image_job import ImageJob

submitted_options = option_group(
    click.option("--submit", is_flag=True, help="Do it as a job of the site, and follow that."),
    click.option("--no-follow", is_flag=True, help="With --submit: print the job's id and do not wait for it."),
    click.option("--time", metavar="TIME", help="With --submit: wall time."),
    click.option("--queue", type=QUEUE, help="With --submit: scheduler partition or queue."),
    click.option("--account", metavar="NAME", help="With --submit: account or project that the job is charged to."),
    click.pass_context,
)
_NOT_IN_JOB = {"--submit": 0, "--no-follow": 0, "--time": 1, "--queue": 1, "--account": 1}


def submit_own_call(job: ImageJob, about: str, asked: dict[str, Any]) -> None:
    """Submit this very command line as a job, whose output has the results, and follow it.

    Parameters
    ----------
    job: whose size, site and account the job has.
    about: what it does, in a sentence.
    asked: the values of :data:`submitted_options`.

    Raises
    ------
    JobFailedError: the job failed.
    """
    from hpcgen.cli.submit_command import followed
    from hpcgen.run.follow import failure
    from hpcgen.run.own_job import passed_on, without_options
    from hpcgen.run.submission import submit_itself

    verb = click.get_current_context().info_name or "hpcgen"
    words = without_options(sys.argv[1:], _NOT_IN_JOB)
    submitted = submit_itself(job, verb, words, about, Path.cwd(), passed_on(os.environ))
    say(f"job {submitted.id} submitted with {submitted.script}")
    if asked["no_follow"]:
        click.echo(submitted.id)
        return
    result = followed(submitted)
    if not result.good:
        raise failure(result, submitted.queue)
    say(f"job {result.id} succeeded; output: {' '.join(result.output) or 'none'}")
