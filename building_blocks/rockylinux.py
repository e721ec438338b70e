"""Rocky Linux as the base."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Packages


class RockyLinux(Block):
    """Rocky Linux, a rebuild of Red Hat Enterprise Linux.  Source: https://rockylinux.org

    Adds tools for unpacking and for configure scripts to the builder. curl is not installed: the images have
    ``curl-minimal``, which conflicts with the full package.
    """

    name = "rockylinux"
    provides = ("base",)

    def packages(self, ctx: Context) -> Packages:
        """Tools to unpack archives and run configure scripts with."""
        tools = ["bzip2", "ca-certificates", "diffutils", "file", "findutils", "gzip", "patch", "tar", "xz"]
        return Packages(build={"dnf": tools})
