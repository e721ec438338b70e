"""tcmalloc of gperftools, an allocator for programs with many threads."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.steps import Part, Run, Test, TextFile, command, lines, run
from hpcgen.model.image_paths import SCRATCH


class Gperftools(AutotoolsBlock):
    """tcmalloc, malloc with a cache for each thread, from source.  Source: https://github.com/gperftools/gperftools

    The allocator of gperftools alone (``libtcmalloc_minimal``), without its profilers, which want libunwind. Programs
    link it, or have it loaded before them: one of them by
    ``env LD_PRELOAD=/opt/gperftools/lib/libtcmalloc_minimal.so.4``, all of the image by the option ``preload``.
    """

    name = "gperftools"
    needs = (need("gnu"),)

    class Options(BlockOptions, frozen=True):
        """``preload``: it serves every program of the image, by the image's /etc/ld.so.preload; see jemalloc."""

        preload: bool = False

    def settings(self, ctx: Context) -> list[str]:
        return ["--enable-minimal", "--disable-static", "--disable-dependency-tracking"]

    def install(self, ctx: Context, source: str) -> list[Part]:
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
            listed = TextFile("files/settings/ld.so.preload", "/etc/ld.so.preload", lines(_library(ctx)))
            yield run("preload", listed, command("ls", _library(ctx)))

    def test(self, ctx: Context) -> list[Test]:
        """By its own count it hands out what a program allocates."""
        program = f"{ctx.prefix}/bin/malloc_test"
        started = program if ctx.options.preload else command("env", f"LD_PRELOAD={_library(ctx)}", program)
        return [Test("serves malloc", started, expect="tcmalloc serves malloc")]


def _library(ctx: Context) -> str:
    return f"{ctx.prefix}/lib/libtcmalloc_minimal.so.4"
