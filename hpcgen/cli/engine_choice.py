"""``--engine``: one of the engines that run, or of those that build, a collection's among them."""

from __future__ import annotations

from typing import Any, Literal

import click

from hpcgen.core.errors import did_you_mean


class EngineChoice(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """The name of an engine; the engines are looked at when a name is given or help is asked for."""

    name = "engine"

    def __init__(self, able: Literal["runners", "builders"]) -> None:
        self.able = able

    def names(self, ctx: click.Context | None) -> list[str]:
        """Those that can, with what the command line's and the environment's collections add."""
        from hpcgen.backends import engines
        from hpcgen.cli.common import collections_of
        from hpcgen.core.support.registry import use_collection

        for folder in collections_of(ctx):
            use_collection(folder)
        return list(getattr(engines, self.able)())

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The names, as click shows choices."""
        return f"[{'|'.join(self.names(ctx))}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name itself; wrong usage if there is no such engine."""
        from hpcgen.backends.engines import ENGINES

        known = self.names(ctx)
        if value in known:
            return value
        if value not in ENGINES:
            self.fail(f"{value!r} is not an engine: {did_you_mean(str(value), known)}", param, ctx)
        found = ENGINES.find(value)
        if self.able == "runners":
            self.fail(f"{value} builds images but cannot start them", param, ctx)
        if not found.builds:
            self.fail(f"{value} starts images but cannot build them: {found.built_by} builds for it", param, ctx)
        return found.builder_name()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names(ctx) if name.startswith(incomplete)]
