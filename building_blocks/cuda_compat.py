"""NVIDIA's compatibility package: the CUDA libraries of a newer driver, for nodes whose driver is older."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.capabilities import UNDER_OLD_DRIVER, Capabilities
from hpcgen.blocks.nvidia import CUDA
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH


class CudaCompat(Block):
    """CUDA forward compatibility.  Source: https://docs.nvidia.com/deploy/cuda-compatibility

    Releases are those of CUDA. On nodes with data-centre GPUs and an older driver branch that these libraries support,
    the image's programs use the newer driver's libraries. No loader finds them by default; ``/opt/cuda_compat/run
    COMMAND`` checks the node's driver and puts them first only if it is older. Job scripts start all ranks with it.
    """

    name = "cuda_compat"
    gpu_vendor = "nvidia"
    brings_driver = True

    def inputs(self, ctx: Context) -> list[Input]:
        """The package of NVIDIA's repository."""
        return [ctx.archive(ctx.facts.architecture)]

    def environment(self, ctx: Context) -> Environment:
        """What starts a command; nothing of it is on a path."""
        return Environment(both={UNDER_OLD_DRIVER: f"{ctx.prefix}/run"})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Take the libraries out of the package, which is not installed: its own folder is known to engines."""
        package, scratch, prefix = ctx.archive(ctx.facts.architecture), f"{SCRATCH}/cuda_compat", ctx.prefix
        yield run(
            "unpack",
            ctx.fetch(package),
            command("mkdir", "-p", prefix),
            command("dpkg-deb", "-x", ctx.local(package), scratch),
            command("mv", f"{scratch}/usr/local/cuda-{ctx.version}/compat", f"{prefix}/lib"),
            f"echo {_driver(ctx).split('.')[0]} > {prefix}/branch",
            command("rm", "-rf", scratch, ctx.local(package)),
        )
        file = "with_cuda_compat.sh"
        yield run(
            "start by driver",
            TextFile(f"files/{file}", f"{prefix}/run", ctx.text_file(file)),
            command("chmod", "755", f"{prefix}/run"),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """The libraries are there, off the loader's path; on a node CUDA is at least of their major version."""
        start = f"{ctx.prefix}/run"
        unused = f"! ldconfig -p | grep -F {ctx.prefix}/"
        return [
            Test("libcuda", f"ls -L {ctx.prefix}/lib/", expect="libcuda.so.1"),
            Test("off the path", unused),
            Test("starts", f"{start} echo started", expect="started"),
            Test("driver", f"{start} nvidia-smi", device="gpu", expect=f"Version: {ctx.version.split('.')[0]}."),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NVIDIA's licence, which installing it accepts."""
        return Capabilities(licences=(CUDA,))


def _driver(ctx: Context) -> str:
    return str(ctx.release.values["driver"])
