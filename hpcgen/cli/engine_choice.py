"""``--engine``: an engine by its name or by its program, a collection's among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from hpcgen.core.errors import did_you_mean

if TYPE_CHECKING:
    from hpcgen.backends.engines import Engine


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

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What the engine is called inside; wrong usage if there is no such engine, or it cannot."""
        from hpcgen.backends.engines import engine_called

        known = self.names(ctx)
        found = engine_called(value)
        if self.able == "measured":
            return found.name if found is not None else value
        if found is None:
            self.fail(f"{value!r} is not an engine: {did_you_mean(str(value), known)}", param, ctx)
        if found.name not in known:
            self.fail(self._cannot(found), param, ctx)
        return found.name if self.able == "runners" else found.builder_name()

    def _cannot(self, found: type[Engine]) -> str:
        if self.able == "runners":
            return f"{found.name} builds images but cannot start them"
        return f"{found.name} starts images but cannot build them: {found.built_by} builds for it"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names(ctx) if name.startswith(incomplete)]
