"""Memory that programs free stays theirs, by variables of the C library."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Environment, Test, command
from hpcgen.core.support.wheel_tags import as_numbers

_ANY = "2.36"
"""The oldest glibc that was seen to take any threshold; others refuse more than half of a heap, 32 MiB, and are left
with one that does not grow. Source: do_set_mmap_threshold of its malloc.c
"""


class KeptMemory(Block):
    """Memory that a program frees is kept for what it allocates next.  Source: https://man7.org/linux/man-pages/man3/mallopt.3.html

    Without it the C library's malloc returns large blocks at once, and the kernel maps and clears them again for each
    training step or temporary array. ``MALLOC_MMAP_THRESHOLD_`` takes blocks of up to 1 GiB (32 MiB before glibc 2.36)
    from memory that the process keeps, up to 4 GiB. Peak memory hardly changes; what a program holds between its peaks
    does. Other allocators ignore both variables.
    """

    name = "kept_memory"

    def environment(self, ctx: Context) -> Environment:
        """Both thresholds."""
        return Environment(both={"MALLOC_MMAP_THRESHOLD_": _threshold(ctx), "MALLOC_TRIM_THRESHOLD_": str(2**32)})

    def test(self, ctx: Context) -> list[Test]:
        """The variable reaches the programs of the image."""
        return [Test("threshold", command("printenv", "MALLOC_MMAP_THRESHOLD_"), expect=_threshold(ctx))]


def _threshold(ctx: Context) -> str:
    known = as_numbers(str(ctx.base.release.values.get("glibc", "0")))
    return str(2**30 if known >= as_numbers(_ANY) else 2**25)
