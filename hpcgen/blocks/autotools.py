"""Software that is built by ``configure`` and ``make``: the steps that its blocks have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Environment, Part, Run, Runtime, command, run
from hpcgen.core.model.image_paths import SCRATCH


class AutotoolsBlock(Block):
    """Base of blocks that compile the archive of their release and install it into their prefix.

    All of that is kept: its tools are how one looks for what is wrong. A subclass says the :meth:`settings`, and
    overrides what it does in another way.
    """

    def settings(self, ctx: Context) -> Sequence[str]:
        """Words of ``configure`` after the prefix."""
        raise NotImplementedError

    def prepare_source(self, ctx: Context) -> Sequence[str]:
        """Commands in the source's folder before ``configure``, such as those that make it."""
        return ()

    def configure(self, ctx: Context) -> str:
        """The command that configures, in the source's folder."""
        return command("./configure", f"--prefix={ctx.prefix}", *self.settings(ctx))

    def make(self, ctx: Context, source: str) -> str:
        """The command that compiles."""
        return f'make -C {source} -j "$(nproc)"'

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Parts of the step that installs and removes the source's folder."""
        return [command("make", "-C", source, "install"), command("rm", "-rf", source)]

    def environment(self, ctx: Context) -> Environment:
        """Programs and libraries."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/{self.name}"
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        configure = [*self.prepare_source(ctx), self.configure(ctx)]
        yield run("configure and compile", command("cd", source), configure, self.make(ctx, source))
        yield run("install", self.install(ctx, source), joins="previous")

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)
