"""Allocators that serve malloc in place of the C library's: what their blocks have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import (
    Environment,
    Input,
    Packages,
    Part,
    Run,
    Runtime,
    Test,
    TextFile,
    command,
    lines,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.obtain == "source")


class AllocatorBlock(AutotoolsBlock):
    """Base of an allocator's block.

    ``file``: its library; ``title``: what building_blocks/files/malloc_test.c calls it. Rows of the release table have
    the name of the distribution's ``package`` where there is one.
    """

    file: ClassVar[str]
    title: ClassVar[str]
    needs = (need("gnu", when=_from_source),)

    class Options(BlockOptions, frozen=True):
        """``obtain``: the distribution's package, where it has one, or compiled from ``source``.

        ``preload``: it serves every program of the image. It is then named in the image's /etc/ld.so.preload, which no
        environment of a job or an engine undoes: ``LD_PRELOAD`` itself is unset inside, because a host's names
        libraries that the image has not.
        """

        obtain: Literal["distribution", "source"] = "distribution"
        preload: bool = False

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """From source where the distribution has no package."""
        return {"obtain": ("source",)}

    def library(self, ctx: Context) -> str:
        """Its path in the image."""
        packaged = f"/usr/lib/{ctx.facts.architecture}-linux-gnu/{self.file}"
        return packaged if _packaged(ctx) else f"{ctx.prefix}/lib/{self.file}"

    def packages(self, ctx: Context) -> Packages:
        return Packages(run={"apt": [str(ctx.release.values["package"])]}) if _packaged(ctx) else Packages()

    def inputs(self, ctx: Context) -> list[Input]:
        return [] if _packaged(ctx) else super().inputs(ctx)

    def environment(self, ctx: Context) -> Environment:
        return Environment() if _packaged(ctx) else super().environment(ctx)

    def build(self, ctx: Context) -> Iterable[Run]:
        return () if _packaged(ctx) else super().build(ctx)

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime() if _packaged(ctx) else super().runtime(ctx)

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return () if _packaged(ctx) else super().artifact(ctx)

    def capabilities(self, ctx: Context) -> Capabilities:
        """That it serves all programs, if it does."""
        return Capabilities(malloc=self.title) if ctx.options.preload else Capabilities()

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Its own installation, and a program that asks it for its count of what was allocated."""
        program = f"{SCRATCH}/malloc_test.c"
        return [
            *super().install(ctx, source),
            TextFile("files/tests/malloc_test.c", program, ctx.text_file("malloc_test.c")),
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            f'"$CC" -O1 -o {ctx.prefix}/bin/malloc_test {program} -ldl',
        ]

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Before every program of the image, if that is asked for."""
        if stage == "final" and ctx.options.preload:
            listed = TextFile("files/settings/ld.so.preload", "/etc/ld.so.preload", lines(self.library(ctx)))
            yield run("preload", listed, command("ls", self.library(ctx)))

    def test(self, ctx: Context) -> list[Test]:
        """By its own count it hands out what a program allocates; of a package, that the loader takes it."""
        if _packaged(ctx):
            seen = command("grep", "-om1", self.file, "/proc/self/maps")
            started = seen if ctx.options.preload else f"{command('env', f'LD_PRELOAD={self.library(ctx)}')} {seen}"
            return [Test("is loaded", started, expect=self.file)]
        program = f"{ctx.prefix}/bin/malloc_test"
        started = program if ctx.options.preload else command("env", f"LD_PRELOAD={self.library(ctx)}", program)
        return [Test("serves malloc", started, expect=f"{self.title} serves malloc")]


def _packaged(ctx: Context) -> bool:
    return bool(ctx.options.obtain == "distribution")
