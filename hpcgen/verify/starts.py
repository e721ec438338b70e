"""Start a job's script right here, read what it prints, and end it when it takes too long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec

from hpcgen.launch.environment import output_variables
from hpcgen.run.image_job import ImageJob, direct_script
from hpcgen.support.processes import require_program, stream


class _TooLong(Exception):
    """A start took longer than its limit."""


class StartResult(msgspec.Struct, frozen=True):
    """How a start ended: its exit status, None if its time was up; what it printed; how long it took."""

    status: int | None
    lines: list[str]
    seconds: float

    @property
    def output(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)


def start_script(script: str, timeout_s: float, on_line: Callable[[str], None] | None = None) -> StartResult:
    """Run a bash script in the present folder.

    Parameters
    ----------
    timeout_s: seconds after which it, and all that it started, is ended.
    on_line: is given each line as it comes; without it the lines are kept.
    """
    began = time.monotonic()
    lines: list[str] = []
    take = on_line or lines.append

    def in_time() -> None:
        if time.monotonic() - began > timeout_s:
            raise _TooLong

    def line(text: str) -> None:
        take(text)
        in_time()

    # Job scripts would take another image from the first; with the others, lines would not come as they are printed.
    left_out = {"HPCGEN_IMAGE", *output_variables()}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    words = [require_program("bash", "start the image"), "-c", script, "run.sh"]
    try:
        status: int | None = stream(words, line, env=env, on_tick=in_time)
    except _TooLong:
        status = None
    return StartResult(status, lines, round(time.monotonic() - began, 3))


def start_job(job: ImageJob, timeout_s: float, on_line: Callable[[str], None] | None = None) -> StartResult:
    """Start an image's job right here, by the site's launch line. Without the preflight: it would look twice."""
    return start_script(direct_script(job), timeout_s, on_line)


def with_layout(
    job: ImageJob,
    command: list[str],
    ranks: int,
    environment: dict[str, str] | None = None,
    *,
    nodes: int = 1,
    threads: int | None = None,
) -> ImageJob:
    """The same image with another command.

    Parameters
    ----------
    ranks: ranks on each node.
    environment: variables of the job beside the stack's own.
    threads: of each rank, those of the job if None.
    """
    replace = msgspec.structs.replace
    plan = job.plan
    stack = replace(
        plan.stack,
        run=replace(plan.stack.run, environment={**plan.stack.run.environment, **(environment or {})}),
    )
    threads = threads or plan.job.threads_per_rank
    size = {"nodes": nodes, "ranks_per_node": ranks, "threads_per_rank": threads, "memory_per_rank_gb": None}
    layout = replace(plan.job, **size, command=command, steps=[])
    return replace(job, plan=replace(plan, stack=stack, job=layout))
