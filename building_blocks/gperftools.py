"""tcmalloc of gperftools, an allocator for programs with many threads."""

from __future__ import annotations

from hpcgen.blocks.allocator import AllocatorBlock
from hpcgen.blocks.base import Context


class Gperftools(AllocatorBlock):
    """tcmalloc, malloc with a cache for each thread.  Source: https://github.com/gperftools/gperftools

    The allocator of gperftools alone (``libtcmalloc_minimal``), without its profilers, which need libunwind. It is
    preloaded: for one program with ``env LD_PRELOAD=libtcmalloc_minimal.so.4``, for all programs of the image with the
    option ``preload``. To link with it, use ``obtain=source``, which installs it in /opt/gperftools.
    """

    name = "gperftools"
    file = "libtcmalloc_minimal.so.4"
    title = "tcmalloc"

    def settings(self, ctx: Context) -> list[str]:
        return ["--enable-minimal", "--disable-static", "--disable-dependency-tracking"]
