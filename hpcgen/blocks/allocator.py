"""Allocators that serve malloc in place of the C library's: what their blocks have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Part, Run, Test, TextFile, command, lines, run
from hpcgen.core.model.image_paths import SCRATCH


class AllocatorBlock(AutotoolsBlock):
    """Base of an allocator's block, whose options have ``preload``: it serves every program of the image.

    It is then named in the image's /etc/ld.so.preload, which no environment of a job or an engine undoes:
    ``LD_PRELOAD`` itself is unset inside, because a host's names libraries that the image has not. ``file``: its
    library below ``lib``; ``title``: what building_blocks/files/malloc_test.c calls it.
    """

    file: ClassVar[str]
    title: ClassVar[str]
    needs = (need("gnu"),)

    def library(self, ctx: Context) -> str:
        """Its path in the image."""
        return f"{ctx.prefix}/lib/{self.file}"

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
        """By its own count it hands out what a program allocates."""
        program = f"{ctx.prefix}/bin/malloc_test"
        started = program if ctx.options.preload else command("env", f"LD_PRELOAD={self.library(ctx)}", program)
        return [Test("serves malloc", started, expect=f"{self.title} serves malloc")]
