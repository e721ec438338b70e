"""tcmalloc of gperftools, an allocator for programs with many threads."""

from __future__ import annotations

from hpcgen.blocks.allocator import AllocatorBlock
from hpcgen.blocks.base import BlockOptions, Context


class Gperftools(AllocatorBlock):
    """tcmalloc, malloc with a cache for each thread, from source.  Source: https://github.com/gperftools/gperftools

    The allocator of gperftools alone (``libtcmalloc_minimal``), without its profilers, which want libunwind. Programs
    link it, or have it loaded before them: one of them by
    ``env LD_PRELOAD=/opt/gperftools/lib/libtcmalloc_minimal.so.4``, all of the image by the option ``preload``.
    """

    name = "gperftools"
    file = "libtcmalloc_minimal.so.4"
    title = "tcmalloc"

    class Options(BlockOptions, frozen=True):
        """``preload``: it serves every program of the image, by the image's /etc/ld.so.preload; see jemalloc."""

        preload: bool = False

    def settings(self, ctx: Context) -> list[str]:
        return ["--enable-minimal", "--disable-static", "--disable-dependency-tracking"]
