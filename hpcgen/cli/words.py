"""Words on the command line that a shell completes."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any

import click
import msgspec

from hpcgen.core.model.fields import Count, Gigabytes, WholeNumber
from hpcgen.core.model.job import JobName


class Word(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """Text that names something; :mod:`hpcgen.cli.completing` knows how it may go on.

    ``what``: a ``site``, ``stack``, ``setting``, …, or a ``file``. ``shown``: how the help calls it.
    """

    name = "text"

    def __init__(self, what: str, shown: str) -> None:
        self.what, self.shown = what, shown

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """How the help calls it."""
        return self.shown

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The words that begin so."""
        from hpcgen.cli.completing import completions

        return completions(self.what, ctx, incomplete)


SITE = Word("site", "NAME|FILE")
STACK = Word("stack", "NAME|FILE")
BLOCK = Word("block", "BLOCK")
NAMED = Word("named", "NAME")
FORMAT = Word("format", "FORMAT")
PARTITION = Word("partition", "NAME")
QUEUE = Word("queue", "NAME")
SETTING = Word("setting", "BLOCK.OPTION=VALUE")
LICENCE = Word("licence", "NAME")
IMAGE = Word("file", "IMAGE")


class StepType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A step by its name and its command, which is split into words as a shell does, and expanded by none."""

    name = "step"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """How the help calls it."""
        return "NAME=COMMAND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The step; wrong usage where it has no name or no command."""
        from hpcgen.core.model.job import JobStep
        from hpcgen.core.support.quoting import NAME_PATTERN

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


# Numbers and names on the command line, held against the types of records' fields.


class FieldType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A value that is held against the type of a record's field, and refused in the same words."""

    name = "value"

    def __init__(self, field: Any) -> None:
        self.field = field

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """As short as it can be; the option's help says the unit."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value; wrong usage if it is none, or out of range."""
        try:
            return msgspec.convert(value, self.field, strict=False)
        except msgspec.ValidationError:
            from hpcgen.core.config.type_words import type_text

            self.fail(f"{value!r} is not {type_text(self.field)}", param, ctx)


COUNT = FieldType(Count)
WHOLE = FieldType(WholeNumber)
JOB_NAME = FieldType(JobName)
GIGABYTES = FieldType(Gigabytes)
SHARE = FieldType(Annotated[float, msgspec.Meta(gt=0, le=1, description="a share: more than 0, at most 1")])
SECONDS = FieldType(Annotated[float, msgspec.Meta(ge=1)])
DAYS = FieldType(Annotated[float, msgspec.Meta(ge=0)])
JOBS = FieldType(Annotated[int, msgspec.Meta(ge=1, le=64)])
