"""Where processes and their memory are placed."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Packages, Run, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH


class Numactl(AutotoolsBlock):
    """numactl and libnuma, which bind processes and memory to NUMA nodes.  Source: https://github.com/numactl/numactl

    For using the command in jobs, and for distributions with too old a version; blocks that only need libnuma use the
    distribution's.
    """

    name = "numactl"
    needs = (need("gnu", build_only=True),)

    def packages(self, ctx: Context) -> Packages:
        """What its ``configure`` is made with."""
        tools = ["autoconf", "automake", "libtool"]
        return Packages(build={"apt": tools, "dnf": tools, "zypper": tools})

    def settings(self, ctx: Context) -> list[str]:
        return ["--disable-static", "--disable-dependency-tracking"]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile it; the archive comes without ``configure``."""
        source = f"{SCRATCH}/numactl"
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        compiled = ["sh autogen.sh", self.configure(ctx), 'make -j "$(nproc)"']
        yield run("configure and compile", command("cd", source), compiled)
        yield run("install", self.install(ctx, source), joins="previous")

    def test(self, ctx: Context) -> list[Test]:
        """It is this one with its library, and reads the policy and CPUs of the process that asks."""
        program = f"{ctx.prefix}/bin/numactl"
        return [
            Test("library", f"ldd {program}", expect=f"{ctx.prefix}/lib/libnuma.so.1"),
            Test("policy", f"{program} --show", expect="policy:"),
        ]
