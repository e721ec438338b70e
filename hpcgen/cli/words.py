"""Words on the command line that a shell completes, and values that are held against the fields of records."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click
import msgspec

from hpcgen.core.errors import InputError, did_you_mean
from hpcgen.core.model.fields import Count, Gigabytes, WholeNumber
from hpcgen.core.model.job import JobName, JobStep

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hpcgen.backends.engines import Engine


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

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
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

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The step; wrong usage where it has no name or no command."""
        from hpcgen.core.support.quoting import NAME_PATTERN

        name, _, text = str(value).partition("=")
        if not re.search(NAME_PATTERN, name):
            self.fail(f"{value!r} is not a step: write NAME=COMMAND, such as 'prepare=python prepare.py'", param, ctx)
        try:
            words = shlex.split(text)
        except ValueError as failure:
            self.fail(f"the command of the step {name} cannot be read: {failure}", param, ctx)
        if not words:
            self.fail(f"the step {name} has no command: write {name}=COMMAND", param, ctx)
        return JobStep(name=name, command=words)


STEP = StepType()


class EngineChoice(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """An engine, called by the same words everywhere; engines are looked at when a word is given or help is asked for.

    ``able``: those that it may be. ``builders`` arrive as records call them, the others by their names; what was
    ``measured`` may have been another engine, which hpcgen does not know.
    """

    name = "engine"

    def __init__(self, able: Literal["runners", "builders", "measured"]) -> None:
        self.able = able

    def names(self, ctx: click.Context | None) -> list[str]:
        """Those that can, with what the command line's and the environment's collections add."""
        from hpcgen.backends import engines
        from hpcgen.cli.common import collections_of
        from hpcgen.core.support.registry import use_collection

        for folder in collections_of(ctx):
            use_collection(folder)
        able = engines.builders() if self.able == "builders" else engines.runners()
        return [each.name for each in able.values()]

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The names, as click shows choices."""
        return f"[{'|'.join(self.names(ctx))}]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """What the engine is called inside; wrong usage if there is no such engine, or it cannot."""
        from hpcgen.backends.engines import engine_called

        value, known = str(value), self.names(ctx)
        found = engine_called(value)
        if self.able == "measured":
            return found.name if found is not None else value
        if found is None:
            self.fail(f"{value!r} is not an engine: {did_you_mean(value, known)}", param, ctx)
        if found.name not in known:
            self.fail(self._cannot(found), param, ctx)
        return found.name if self.able == "runners" else found.builder_name()

    def _cannot(self, found: type[Engine]) -> str:
        if self.able == "runners":
            return f"{found.name} builds images but cannot start them"
        return f"{found.name} starts images but cannot build them: {found.built_by} builds for it"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names(ctx) if name.startswith(incomplete)]


# Numbers and names on the command line, held against the types of records' fields.


class FieldType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A value that is held against the type of a record's field, and refused in the same words."""

    name = "value"

    def __init__(self, field: object) -> None:
        self.field = field

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """As short as it can be; the option's help says the unit."""
        return "N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
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


class CloneType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A clone that is read instead of a repository: ``OWNER/NAME=DIR``."""

    name = "clone"
    form = "OWNER/NAME=DIR"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        repository, _, folder = str(value).partition("=")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository) or not folder:
            self.fail(f"{value!r} names no clone; write {self.form}, such as TACC/TACC-Docs=clones/docs", param, ctx)
        return repository, Path(folder)


CLONE = CloneType()


def clone_folders(named: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    """The folders of the clones that were named, by ``OWNER/NAME``; InputError for what is none."""
    found = dict(named)
    for folder in found.values():
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder", "--clone", remedy="check the spelling of its path")
    return found
