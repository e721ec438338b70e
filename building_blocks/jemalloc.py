"""jemalloc, an allocator for programs with many threads."""

from __future__ import annotations

from hpcgen.blocks.allocator import AllocatorBlock
from hpcgen.blocks.base import BlockOptions, Context
from hpcgen.blocks.steps import Test


class Jemalloc(AllocatorBlock):
    """jemalloc, malloc with little fragmentation and many threads, from source.  Source: https://jemalloc.net

    Programs link it, or have it loaded before them: one of them by
    ``env LD_PRELOAD=/opt/jemalloc/lib/libjemalloc.so.2``, all of the image by the option ``preload``.
    """

    name = "jemalloc"
    file = "libjemalloc.so.2"
    title = "jemalloc"

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

    def test(self, ctx: Context) -> list[Test]:
        """Its version; by its own count it hands out what a program allocates."""
        version = Test("version", f"{ctx.prefix}/bin/jemalloc-config --version", expect=f"{ctx.version}-")
        return [version, *super().test(ctx)]
