"""Rocky Linux as the base."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Packages


class RockyLinux(Block):
    """Rocky Linux, a rebuild of Red Hat Enterprise Linux.  Source: https://rockylinux.org

    Adds to the builder what unpacking and configure scripts need. curl is not named: the images have
    ``curl-minimal``, with which the full package conflicts.
    """

    name = "rockylinux"
    provides = ("base",)

    def packages(self, ctx: Context) -> Packages:
        """Tools to unpack archives and run configure scripts with."""
        tools = ["bzip2", "ca-certificates", "diffutils", "file", "findutils", "gzip", "patch", "tar", "xz"]
        return Packages(build={"dnf": tools})
