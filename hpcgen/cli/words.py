"""Words on the command line that a shell completes."""

from __future__ import annotations

from typing import Any

import click


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
