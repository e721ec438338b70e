"""Numbers on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import click
import msgspec

from hpcgen.model.fields import Count, Gigabytes, WholeNumber


class Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A number that is held against the type of a record's field, and refused in the same words."""

    name = "number"

    def __init__(self, field: Any) -> None:
        self.field = field

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """As short as it can be; the option's help says the unit."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; wrong usage if it is none, or out of range."""
        try:
            return msgspec.convert(value, self.field, strict=False)
        except msgspec.ValidationError:
            from hpcgen.config.type_words import type_text

            self.fail(f"{value!r} is not {type_text(self.field)}", param, ctx)


COUNT = Number(Count)
WHOLE = Number(WholeNumber)
GIGABYTES = Number(Gigabytes)
SECONDS = Number(Annotated[float, msgspec.Meta(ge=1)])
DAYS = Number(Annotated[float, msgspec.Meta(ge=0)])
JOBS = Number(Annotated[int, msgspec.Meta(ge=1, le=64)])
