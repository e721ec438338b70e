"""RCCL, collectives between AMD GPUs."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.gpu_collectives import gpu_networks, with_verbs
from hpcgen.blocks.steps import Environment, Input, Packages, Test


class Rccl(Block):
    """ROCm Communication Collectives Library, from AMD's packages.  Source: https://github.com/ROCm/rccl

    It has NCCL's interface. Its version here is that of its ROCm, as in AMD's repository.
    """

    name = "rccl"
    gpu_vendor = "amd"
    needs = (need("rocm"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing beside distribution packages."""
        return []

    def packages(self, ctx: Context) -> Packages:
        """AMD's packages, from the repository that ROCm's image names, and verbs; headers for the builder alone."""
        return with_verbs(ctx, Packages(build={"apt": ["rccl-dev"]}, run={"apt": ["rccl"]}))

    def capabilities(self, ctx: Context) -> Capabilities:
        return Capabilities(gpu_collectives="RCCL", gpu_networks=gpu_networks(ctx))

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts."""
        return Environment(build={"RCCL_PATH": ctx.use("rocm").prefix})

    def test(self, ctx: Context) -> list[Test]:
        """The library is there with all that it is linked with."""
        library = f"{ctx.use('rocm').prefix}/lib/librccl.so.1"
        return [Test("library", f"ldd {library}", expect="libamdhip64.so")]
