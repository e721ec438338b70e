"""What is asked of a batch system about a job, and what it answers: one small class per system.

A class makes commands and reads answers; it starts nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from hpcgen.model.site import Scheduler as SiteScheduler

Phase = Literal["waiting", "running", "ended", "gone"]
"""``gone``: the batch system does not know the job, or no longer."""


class JobState(msgspec.Struct, frozen=True):
    """What is known of a job at one moment.

    Parameters
    ----------
    word: the system's own word for the state.
    good: it ended as it should; meant for ``phase="ended"`` alone.
    reason: why it waits, or why it ended.
    exit_status: of the job script; None before its end and where no status is told.
    elapsed_s: seconds that it has run.
    output, error: files; "" where the system does not tell. ``error`` is "" where it is the same file.
    """

    phase: Phase
    word: str
    good: bool = False
    reason: str = ""
    exit_status: int | None = None
    signal: int = 0
    elapsed_s: int | None = None
    where: str = ""
    output: str = ""
    error: str = ""


GONE = JobState("gone", "unknown")


class Queue:
    """Base of the systems. ``output_at_end``: the output file appears when the job has ended."""

    programs: ClassVar[tuple[str, ...]]
    output_at_end: ClassVar[bool] = False

    def submit(self, script: Path) -> list[str]:
        """The command that submits a script, to be run in the job's folder."""
        raise NotImplementedError

    def job_id(self, output: str) -> str:
        """The job's id from what that command printed; "" if it is not there."""
        raise NotImplementedError

    def ask(self, job_id: str) -> list[list[str]]:
        """Commands that tell the state; the next is tried where one knows nothing of the job."""
        raise NotImplementedError

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The state in the answer of such a command; None if the system could not be reached."""
        raise NotImplementedError

    def look(self, job_id: str) -> list[str]:
        """The command by which a person looks at the job."""
        raise NotImplementedError

    def cancel(self, job_id: str) -> list[str]:
        """The command that cancels it."""
        raise NotImplementedError

    def default_files(self, name: str, job_id: str, scheduler: SiteScheduler) -> tuple[str, str]:
        """Output and error file where the system does not tell them, relative to the job's folder."""
        raise NotImplementedError


def queue_for(scheduler: SiteScheduler) -> Queue | None:
    """The batch system of a profile; None for a site that has none."""
    if scheduler.kind == "slurm":
        from hpcgen.schedulers.slurm_queue import SlurmQueue

        return SlurmQueue()
    if scheduler.kind == "none":
        return None
    from hpcgen.schedulers.pbs_queue import PbsQueue, TorqueQueue

    return PbsQueue() if scheduler.kind == "pbs" else TorqueQueue()


def seconds_of(text: str) -> int | None:
    """Seconds of ``[DAYS-]HOURS:MINUTES:SECONDS`` or ``MINUTES:SECONDS``; None for anything else."""
    days, _, rest = text.rpartition("-")
    parts: Sequence[str] = rest.split(":")
    if not all(part.isdigit() for part in parts) or len(parts) not in (2, 3) or (days and not days.isdigit()):
        return None
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return seconds + int(days or 0) * 86400
