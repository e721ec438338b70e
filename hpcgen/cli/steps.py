"""Steps of a job on the command line: ``NAME=COMMAND``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hpcgen.core.support.quoting import NAME_PATTERN

if TYPE_CHECKING:
    from hpcgen.core.model.job import JobStep


class StepType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A step by its name and its command, which is split into words as a shell does, and expanded by none."""

    name = "step"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """How the help calls it."""
        return "NAME=COMMAND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The step; wrong usage where it has no name or no command."""
        from hpcgen.core.model.job import JobStep

        name, _, text = value.partition("=")
        if not re.search(NAME_PATTERN, name):
            self.fail(f"{value!r} is no step: write NAME=COMMAND, such as 'prepare=python prepare.py'", param, ctx)
        try:
            words = shlex.split(text)
        except ValueError as failure:
            self.fail(f"the command of the step {name} cannot be read: {failure}", param, ctx)
        if not words:
            self.fail(f"the step {name} has no command: write {name}=COMMAND", param, ctx)
        return JobStep(name=name, command=words)


STEP = StepType()


def together(steps: Sequence[JobStep], command: Sequence[str] | None) -> list[JobStep]:
    """The steps; wrong usage where two have one name, or where a command is asked for beside them."""
    names = [step.name for step in steps]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.BadParameter(f"two steps are called {twice[0]}", param_hint="--step")
    if steps and command:
        raise click.UsageError("--step and a command after -- exclude each other: make the command a step")
    return list(steps)
