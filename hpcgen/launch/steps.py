"""Several commands in one job: the shell that starts them in order, and the lines by which it says how far it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.core.model.job import JobStep
from hpcgen.core.support.quoting import line
from hpcgen.core.support.templates import Template

MARK = "hpcgen-step:"
"""What the lines begin with; the time in UTC, the step and what became of it follow."""

_LINE = re.compile(
    rf"{MARK} \S+ (?P<name>[a-z0-9._-]+) \((?P<number>\d+) of (?P<count>\d+)\) "
    r"(?:begins|ended with status (?P<status>\d+) after (?P<seconds>\d+) s)"
)
_fill = Template(Path(__file__).with_name("templates") / "job.sh").fill


class StepState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a step is, the ``number``-th of ``count``; without a status it has begun."""

    name: str
    number: int
    count: int
    exit_status: int | None = None
    seconds: int | None = None

    @property
    def title(self) -> str:
        """``train (2 of 3)``."""
        return f"{self.name} ({self.number} of {self.count})"


def steps_text(steps: Sequence[JobStep], run: str) -> str:
    """The end of a job script that starts steps.

    Parameters
    ----------
    run: shell that starts the words in ``$@`` on all ranks.
    """
    calls = [line(["step", step.name, *step.command]) for step in steps]
    return _fill("steps", count=str(len(steps)), mark=MARK, run=run, steps=calls)


def read_step(text: str) -> StepState | None:
    """What one of the lines says; None for any other line."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        return None
    status, seconds = found["status"], found["seconds"]
    return StepState(
        found["name"],
        int(found["number"]),
        int(found["count"]),
        int(status) if status is not None else None,
        int(seconds) if seconds is not None else None,
    )
