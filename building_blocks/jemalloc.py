"""jemalloc, an allocator for programs with many threads."""

from __future__ import annotations

from hpcgen.blocks.allocator import AllocatorBlock
from hpcgen.blocks.base import Context
from hpcgen.blocks.steps import Test


class Jemalloc(AllocatorBlock):
    """jemalloc, malloc with little fragmentation and many threads.  Source: https://jemalloc.net

    It is preloaded: for one program with ``env LD_PRELOAD=libjemalloc.so.2``, for all programs of the image with the
    option ``preload``. To link with it, use ``obtain=source``, which installs it in /opt/jemalloc.
    """

    name = "jemalloc"
    file = "libjemalloc.so.2"
    title = "jemalloc"

    def settings(self, ctx: Context) -> list[str]:
        """On ARM for pages of up to 64 KiB: otherwise it works only with those of the building machine."""
        pages = ["--with-lg-page=16"] if ctx.facts.architecture == "aarch64" else []
        return ["--disable-static", "--disable-doc", *pages]

    def test(self, ctx: Context) -> list[Test]:
        """Its version; by its own count it hands out what a program allocates."""
        if ctx.options.obtain == "distribution":
            return super().test(ctx)
        version = Test("version", f"{ctx.prefix}/bin/jemalloc-config --version", expect=f"{ctx.version}-")
        return [version, *super().test(ctx)]
