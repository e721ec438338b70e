"""Options ``cuda`` and ``rocm`` of MPI and of what it sends by: whose GPUs' memory it sends from and to."""

from __future__ import annotations

from hpcgen.blocks.base import Context

_VENDORS = {"cuda": "nvidia", "rocm": "amd"}


def gpu_memory(ctx: Context) -> str:
    """The vendor of those GPUs; "" where neither option is set."""
    return next((vendor for option, vendor in _VENDORS.items() if getattr(ctx.options, option)), "")
