"""The options of ``submit`` and ``job`` that say how a job is queued."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import option_group
from hpcgen.cli.options import Options, in_record

if TYPE_CHECKING:
    from hpcgen.core.model.queueing import Queueing

_ARRAY = re.compile(r"([1-9]\d{0,6})(?:%([1-9]\d{0,6}))?")


class QueueingOptions(Options, frozen=True, kw_only=True):
    """How a job is queued, as the command line says it."""

    after: str = ""
    array: str | None = None
    checkpoint: str | None = None
    requeue: bool = False


queueing_options = option_group(
    click.option("--after", metavar="JOB", default="", help="Begin when this job has ended, however it ends."),
    click.option(
        "--array",
        metavar="N[%M]",
        help="An array of N tasks, of which M run at a time; $HPCGEN_TASK numbers them from 0. Not followed.",
    ),
    click.option(
        "--checkpoint",
        metavar="TIME",
        help="So long before the time limit run the stack's checkpoint command, such as 5m.",
    ),
    click.option(
        "--requeue", is_flag=True, help="Put the job back into the queue after its checkpoint, and if a node fails."
    ),
    in_record(QueueingOptions, "queued"),
)
"""A command gets them as ``queued: QueueingOptions``."""


def queueing_from(queued: QueueingOptions) -> Queueing:
    """What these options ask for; wrong usage where one cannot be read."""
    from hpcgen.core.model.queueing import Queueing
    from hpcgen.launch.job.walltime import parse_walltime

    tasks, at_once = _array(queued.array) if queued.array is not None else (None, None)
    checkpoint_s = parse_walltime(queued.checkpoint, "--checkpoint") if queued.checkpoint is not None else None
    return Queueing(after=queued.after, tasks=tasks, at_once=at_once, checkpoint_s=checkpoint_s, requeue=queued.requeue)


def _array(text: str) -> tuple[int, int | None]:
    """How many tasks, and how many of them at a time."""
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no number of tasks, such as 10 or 10%2", param_hint="--array")
    return int(found[1]), int(found[2]) if found[2] else None
