"""NCCL, collectives between NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.gpu_collectives import gencode, gpu_networks, with_verbs
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH


class Nccl(Block):
    """NVIDIA Collective Communications Library, from source.  Source: https://github.com/NVIDIA/nccl

    Compiled only for the compute capability of the partition's GPUs, which takes minutes instead of an hour; if the
    site does not state it, for all that CUDA supports. It finds InfiniBand at run time through libibverbs.
    """

    name = "nccl"
    gpu_vendor = "nvidia"
    needs = (need("cuda"), need("gnu"))

    def packages(self, ctx: Context) -> Packages:
        """The libraries of verbs, where the GPUs of several nodes are joined by InfiniBand."""
        return with_verbs(ctx, Packages())

    def capabilities(self, ctx: Context) -> Capabilities:
        return Capabilities(gpu_collectives="NCCL", gpu_networks=gpu_networks(ctx))

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts and the loader."""
        return Environment(
            both={"NCCL_INSTALL_PATH": ctx.prefix},
            paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/nccl"
        make = command("make", "src.build", f"CUDA_HOME={ctx.use('cuda').prefix}", *gencode(ctx))
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run("compile", command("cd", source), f'{make} -j "$(nproc)"')
        yield run(
            "install",
            command("mkdir", "-p", ctx.prefix),
            command("cp", "-a", f"{source}/build/include", f"{source}/build/lib", ctx.prefix),
            f"rm -f {ctx.prefix}/lib/*.a",
            command("rm", "-rf", source),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        """The library is there and finds its own."""
        missing = f"ldd {ctx.prefix}/lib/libnccl.so.2 | grep -c 'not found' | grep -qx 0"
        return [Test("library", missing)]
