"""Debian as the base."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Packages


class Debian(Block):
    """Debian, a stable release.  Source: https://www.debian.org

    Adds tools for fetching and unpacking to the builder, and nothing to the final stage.
    """

    name = "debian"
    provides = ("base",)

    def packages(self, ctx: Context) -> Packages:
        """Tools to fetch and unpack archives with."""
        return Packages(build={"apt": ["bzip2", "ca-certificates", "curl", "patch", "xz-utils"]})
