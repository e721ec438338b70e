"""openSUSE Leap as the base."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Packages


class OpensuseLeap(Block):
    """openSUSE Leap, built from the sources of SUSE Linux Enterprise.  Source: https://www.opensuse.org

    Cray systems run SUSE, so their software is made for it. Adds tools for unpacking and for configure scripts to the
    builder.
    """

    name = "opensuse_leap"
    provides = ("base",)

    def packages(self, ctx: Context) -> Packages:
        """Tools to fetch and unpack archives and to run configure scripts with."""
        tools = ["bzip2", "ca-certificates", "curl", "diffutils", "file", "findutils", "gzip", "patch", "tar", "xz"]
        return Packages(build={"zypper": tools})
