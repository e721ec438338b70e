"""Apache MXNet, by its wheels."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.old_driver import old_driver
from hpcgen.blocks.steps import Test, TextFile, Wheels, command
from hpcgen.blocks.wheel_program import WheelBlock, share_program, share_setting

OLDEST_DRIVER, NEWEST_CAPABILITY = "450.80.02", "8.6"
"""What CUDA 11.2 asks of a node; a test holds it against the table of cuda."""


def _on_gpu(situation: Situation) -> bool:
    return bool(situation.options.gpu)


class Mxnet(WheelBlock):
    """Apache MXNet, deep learning.  Source: https://github.com/apache/mxnet

    Its packages for x86_64 have oneDNN (MKL-DNN), OpenBLAS and its own distributed key-value store. The last release is
    1.9.1; 2.0 was never released.
    """

    name = "mxnet"
    distributions = ("mxnet",)
    needs = (
        need("python"),
        need("cuda", when=_on_gpu),
        need("cudnn", when=_on_gpu),
        need("nccl", when=_on_gpu),
    )

    class Options(BlockOptions, frozen=True):
        """``gpu``: for NVIDIA's GPUs, with CUDA 11.2; the default if it supports the partition's GPU."""

        gpu: bool = False

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The GPU where its package can use it: NVIDIA's, on x86_64, neither driver nor GPU unknown to CUDA 11.2."""
        return {"gpu": facts.partition.gpu is not None and not _why_not(facts)}

    # Its Fortran library is linked with libquadmath.
    libraries = ("libgomp", "libquadmath", "libstdc++")

    def wheels(self, ctx: Context) -> Wheels:
        """The wheel with all it needs; newer NumPys have no more of what it calls (np.bool)."""
        package = "mxnet-cu112" if ctx.options.gpu else "mxnet"
        name = ctx.facts.listed(f"{package}-{ctx.version}")
        return ctx.wheels(name, [f"{package}=={ctx.version}", *ctx.release.values["pins"]])

    def programs(self, ctx: Context) -> list[TextFile]:
        return [share_program(ctx, "mxnet_step.py"), share_setting(ctx, "device", "gpu" if ctx.options.gpu else "cpu")]

    def test(self, ctx: Context) -> list[Test]:
        """It loads, and a small network learns."""
        python = f"{ctx.use('python').prefix}/bin/python"
        version = "import mxnet; print(mxnet.__version__)"
        device = "gpu" if ctx.options.gpu else ""
        return [
            Test("version", command(python, "-c", version), device=device, expect=ctx.version),
            Test(
                "training",
                command(python, f"{ctx.prefix}/share/mxnet_step.py"),
                device=device,
                expect="images per second",
            ),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """Why a GPU is not used."""
        if ctx.facts.partition.gpu is None or ctx.options.gpu:
            return Capabilities()
        return Capabilities(gpu_unused=_why_not(ctx.facts) or GpuUnused("mxnet.gpu=false was requested"))


def _why_not(facts: Facts) -> GpuUnused | None:
    """Why no package computes on the partition's GPU; None if one does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor != "nvidia" or facts.architecture != "x86_64":
        return GpuUnused("there is no package for it")
    if old := old_driver(gpu, OLDEST_DRIVER, "CUDA 11.2 needs"):
        return old
    if gpu.capability is not None and Version(gpu.capability) > Version(NEWEST_CAPABILITY):
        return GpuUnused(f"CUDA 11.2 knows GPUs up to capability {NEWEST_CAPABILITY}, and it has {gpu.capability}")
    return None
