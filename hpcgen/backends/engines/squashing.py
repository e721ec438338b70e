"""How the squashfs of an image is compressed.

Of 1.8 GB of libraries and Python packages mksquashfs 4.5.1 made, with the seconds of the processor: gzip level 9, its
default, 465 MB in 147 s; level 6, 467 MB in 44 s; zstd level 3, 485 MB in 8 s (2026-11-26). Every kernel and engine
that mounts squashfs knows gzip. zstd came with Linux 4.14 and squashfuse 0.1.101, where they were built with it, so
the profile has to say that the site's have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SquashfsCompressor

MKSQUASHFS_OPTIONS: Mapping[SquashfsCompressor, tuple[str, ...]] = MappingProxyType(
    {
        "gzip": ("-comp", "gzip", "-Xcompression-level", "6"),
        "zstd": ("-comp", "zstd", "-Xcompression-level", "3"),
    }
)
"""Words for mksquashfs, which uses all processors by itself."""

SQUASHING = "--mksquashfs-args"
"""Apptainer's option for words of mksquashfs, since 1.4.0 (its CHANGELOG.md)."""


def squashing_words(plan: Plan) -> tuple[str, ...]:
    """What mksquashfs is told for an image of the plan's engine: gzip where the profile does not name a compressor."""
    engine = plan.site.containers.engines.get(plan.engine)
    return MKSQUASHFS_OPTIONS[engine.squashfs if engine is not None and engine.squashfs else "gzip"]
