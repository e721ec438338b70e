"""jemalloc, an allocator for programs with many threads."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.steps import Part, Run, Test, TextFile, command, lines, run
from hpcgen.model.image_paths import SCRATCH


class Jemalloc(AutotoolsBlock):
    """jemalloc, malloc with little fragmentation and many threads, from source.  Source: https://jemalloc.net

    Programs link it, or have it loaded before them: one of them by
    ``env LD_PRELOAD=/opt/jemalloc/lib/libjemalloc.so.2``, all of the image by the option ``preload``.
    """

    name = "jemalloc"
    needs = (need("gnu"),)

    class Options(BlockOptions, frozen=True):
        """``preload``: it serves every program of the image.

        It is then named in the image's /etc/ld.so.preload, which no environment of a job or an engine undoes:
        ``LD_PRELOAD`` itself is unset inside, because a host's names libraries that the image has not.
        """

        preload: bool = False

    def settings(self, ctx: Context) -> list[str]:
        """On ARM for pages of up to 64 KiB: otherwise it works only with those of the building machine."""
        pages = ["--with-lg-page=16"] if ctx.facts.architecture == "aarch64" else []
        return ["--disable-static", "--disable-doc", *pages]

    def install(self, ctx: Context, source: str) -> list[Part]:
        program = f"{SCRATCH}/malloc_test.c"
        return [
            *super().install(ctx, source),
            TextFile("files/tests/malloc_test.c", program, ctx.text_file("malloc_test.c")),
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
        return [
            Test("version", f"{ctx.prefix}/bin/jemalloc-config --version", expect=f"{ctx.version}-"),
            Test("serves malloc", started, expect="jemalloc serves malloc"),
        ]


def _library(ctx: Context) -> str:
    return f"{ctx.prefix}/lib/libjemalloc.so.2"
