"""Start a job's script right here, read what it prints, and end it when it takes too long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container
from pathlib import Path

import msgspec

from hpcgen.core.support.processes import require_program, stream
from hpcgen.launch.environment import output_variables
from hpcgen.running.image_job import ImageJob, direct_script
from hpcgen.running.shared_cpus import sharing_cpus

ADDING = tuple(
    f"{name}{what}" for name in ("APPTAINER", "SINGULARITY") for what in ("ENV_", "_BIND", "_MOUNT", "_ENV", "_OVERLAY")
)
"""How variables begin by which Apptainer shows more of the host inside. Source: apptainer exec --help."""


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


def start_script(
    script: str,
    timeout_s: float,
    on_line: Callable[[str], None] | None = None,
    *,
    folder: Path | None = None,
    left_out: Container[str] = (),
) -> StartResult:
    """Run a bash script.

    timeout_s: seconds after which it, and all that it started, is ended.
    on_line: is given each line as it comes; without it the lines are kept.
    folder: that it runs in, the present one if None.
    left_out: more variables of this process that it does not get.
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
    never = {"HPCGEN_IMAGE", *output_variables()}
    env = {name: value for name, value in os.environ.items() if name not in never and name not in left_out}
    words = [require_program("bash", "start the image", "install bash"), "-c", script, "run.sh"]
    try:
        status: int | None = stream(words, line, env=env, cwd=folder, on_tick=in_time)
    except _TooLong:
        status = None
    return StartResult(status, lines, round(time.monotonic() - began, 3))


def start_job(
    job: ImageJob, timeout_s: float, on_line: Callable[[str], None] | None = None, folder: Path | None = None
) -> StartResult:
    """Start an image's job right here, by the site's launch line. Without the preflight: it would look twice.

    ``timeout_s``, ``on_line``, ``folder``: as for :func:`start_script`.
    """
    left_out = [name for name in os.environ if name.startswith(ADDING)] if job.sealed else []
    return start_script(direct_script(sharing_cpus(job)), timeout_s, on_line, folder=folder, left_out=left_out)


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
