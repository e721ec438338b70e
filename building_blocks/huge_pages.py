"""Memory in huge pages, by variables of the C library and of PyTorch."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Test
from hpcgen.core.support.wheel_tags import as_numbers

_FIRST = "2.35"
"""The first glibc with the tunable.  Source: glibc's NEWS, version 2.35."""


class HugePages(Block):
    """Huge pages for what programs allocate, without a library.  Source: https://sourceware.org/glibc/manual/

    The image sets ``GLIBC_TUNABLES=glibc.malloc.hugetlb=1``, so that malloc asks the kernel for huge pages, and
    ``THP_MEM_ALLOC_ENABLE=1``, so that PyTorch does the same for tensors. Programs that keep allocating and freeing
    large blocks gain from it, and may need somewhat more memory; without ``kept_memory``, which has malloc keep what
    they free, a training run was slower with it. There are no huge pages if the node's
    /sys/kernel/mm/transparent_hugepage/enabled says never. Other allocators ignore these variables.
    """

    name = "huge_pages"
    needs = (need("kept_memory"),)

    def environment(self, ctx: Context) -> Environment:
        """All variables; the C library's tunable where it knows it."""
        known = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if _known(ctx) else {}
        return Environment(both={**known, "THP_MEM_ALLOC_ENABLE": "1"})

    def details(self, ctx: Context) -> list[str]:
        """That the base is too old."""
        here = f"{ctx.base.name} {ctx.base.version}"
        return [] if _known(ctx) else [f"malloc of {here} cannot use huge pages, which need glibc {_FIRST}"]

    def test(self, ctx: Context) -> list[Test]:
        """The C library knows the tunable."""
        asked = "$(ls /lib*/ld-linux-*.so.* | head -n 1) --list-tunables | grep malloc.hugetlb"
        return [Test("malloc.hugetlb", asked, expect="hugetlb: 0x1")] if _known(ctx) else []


def _known(ctx: Context) -> bool:
    return as_numbers(str(ctx.base.release.values.get("glibc", "0"))) >= as_numbers(_FIRST)
