"""The library with which ranks of a node map each other's memory."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Environment, Packages, Test, command, complete


class Xpmem(AutotoolsBlock):
    """libxpmem, for nodes with the kernel module of that name.  Source: https://github.com/openucx/xpmem

    Only the library; the host provides the module. This is the repository maintained by UCX's developers.
    """

    name = "xpmem"
    needs = (need("gnu", build_only=True),)

    def packages(self, ctx: Context) -> Packages:
        """What its ``configure`` is made with."""
        tools = ["autoconf", "automake", "libtool", "make"]
        return Packages(build={"apt": tools, "dnf": tools, "zypper": tools})

    def prepare_source(self, ctx: Context) -> list[str]:
        """``configure`` is made: the archive comes without it."""
        return [command("sh", "autogen.sh")]

    def settings(self, ctx: Context) -> list[str]:
        return ["--disable-kernel-module", "--disable-static"]

    def environment(self, ctx: Context) -> Environment:
        """The library alone: there is no program."""
        return Environment(paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def test(self, ctx: Context) -> list[Test]:
        """The library is there with all that it needs; on a node with the module, it may be opened."""
        library = f"{ctx.prefix}/lib/libxpmem.so.0"
        missing = complete(library)
        return [Test("library", missing), Test("device", "test -w /dev/xpmem", device="/dev/xpmem")]
