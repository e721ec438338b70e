"""The options of commands that can have themselves done as a job of the site, and that job."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import option_group, say
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.words import QUEUE

if TYPE_CHECKING:
    from hpcgen.core.model.job import Queueing
    from hpcgen.core.model.site import Site
    from hpcgen.running.image_job import ImageJob
    from hpcgen.running.submission import Submitted


class SubmissionOptions(Options, frozen=True, kw_only=True):
    """Whether a command is done as a job of the site, and how that is queued."""

    submit: bool = False
    no_follow: bool = False
    time: str | None = None
    queue: str | None = None
    account: str | None = None
    tasks: int | None = None

    def account_at(self, site: Site) -> str | None:
        """The account that is asked for, else the user's own at that site."""
        from hpcgen.core.config.user_config import account_for

        return account_for(site, self.account)

    def check(self) -> None:
        """UsageError where something is said of a job that is not asked for."""
        if not self.submit and (given := self.given()):
            raise click.UsageError(f"{', '.join(given)} requires --submit")


submitted_options = option_group(
    click.option("--submit", is_flag=True, help="Run as a job of the site, and follow it."),
    click.option("--no-follow", is_flag=True, help="With --submit: print the job's id and do not wait for it."),
    click.option("--time", metavar="TIME", help="With --submit: wall time."),
    click.option("--queue", type=QUEUE, help="With --submit: scheduler partition or queue."),
    click.option("--account", metavar="NAME", help="With --submit: account or project that the job is charged to."),
    click.pass_context,
    in_record(SubmissionOptions, "submission"),
)
"""The options of every command that can do so, which gets them as ``submission: SubmissionOptions``."""
_NOT_IN_JOB = {"--submit": 0, "--tasks": 1, "--no-follow": 0, "--time": 1, "--queue": 1, "--account": 1}


def submit_own_call(
    job: ImageJob,
    about: str,
    submission: SubmissionOptions,
    more: Sequence[str] = (),
    part: str = "",
    queueing: Queueing | None = None,
) -> None:
    """Submit this very command line as a job, whose output has the results, and follow it.

    job: whose size, site and account the job has.
    about: what it does, in a sentence.
    more, part, queueing: as for :func:`own_job`.
    JobFailedError: the job failed.
    """
    from hpcgen.cli.run_command import followed
    from hpcgen.running.follow import failure

    submitted = own_job(job, about, more, part, queueing)
    say(f"job {submitted.id} submitted with {submitted.script}")
    if submission.no_follow:
        click.echo(submitted.id)
        return
    result = followed(submitted)
    if not result.good:
        raise failure(result, submitted.queue)
    say(f"job {result.id} succeeded; output: {' '.join(result.output) or 'none'}")


def submit_array(
    job: ImageJob, about: str, submission: SubmissionOptions, *, each: Sequence[str], end: Sequence[str], at_end: str
) -> None:
    """Submit this command line as an array of its tasks, and as a job after all of them that is followed.

    That job runs however the tasks have ended.

    about: as for :func:`submit_own_call`.
    each, end: words that are added for each task, and for the job after them.
    at_end: what that job does.
    JobFailedError: it failed, or the batch system refuses one of the two.
    """
    from hpcgen.core.model.job import Queueing

    array = own_job(job, f"{about}.", each, queueing=Queueing(tasks=submission.tasks))
    say(f"array {array.id} of {submission.tasks} tasks submitted with {array.script}: {array.hint}")
    after = Queueing(after=array.id)
    submit_own_call(job, f"{about}: {at_end}.", submission, more=end, part="-end", queueing=after)


def own_job(
    job: ImageJob, about: str, more: Sequence[str] = (), part: str = "", queueing: Queueing | None = None
) -> Submitted:
    """Submit this command line, without what is of its submission, as a job.

    more: words that are added to it.
    part: what the job's name says beside the subcommand.
    queueing: as for :func:`hpcgen.running.submission.submit_itself`; by default plain.
    """
    from hpcgen.core.model.job import Queueing
    from hpcgen.running.submission import passed_on, submit_itself, without_options

    verb = (click.get_current_context().info_name or "hpcgen") + part
    words = [*without_options(sys.argv[1:], _NOT_IN_JOB), *more]
    return submit_itself(job, verb, words, about, Path.cwd(), passed_on(os.environ), queueing=queueing or Queueing())
