"""Apache MXNet, by its wheels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from packaging.version import Version

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, lines, run

OLDEST_DRIVER, NEWEST_CAPABILITY = "450.80.02", "8.6"
"""What CUDA 11.2 asks of a node; a test holds it against the table of cuda."""


def _on_gpu(situation: Situation) -> bool:
    return bool(situation.options.gpu)


class Mxnet(Block):
    """Apache MXNet, deep learning.  Source: https://github.com/apache/mxnet

    Its packages for x86_64 have oneDNN (MKL-DNN), OpenBLAS and its own distributed key-value store. There is no
    release 2.0: 1.9.1 is the last.
    """

    name = "mxnet"
    needs = (
        need("python"),
        need("cuda", when=_on_gpu),
        need("cudnn", when=_on_gpu),
        need("nccl", when=_on_gpu),
    )

    class Options(BlockOptions, frozen=True):
        """``gpu``: for NVIDIA's GPUs, with CUDA 11.2; by default where the partition has one that this knows."""

        gpu: bool = False

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The GPU where its package can use it: NVIDIA's, on x86_64, neither driver nor GPU unknown to CUDA 11.2."""
        return {"gpu": facts.partition.gpu is not None and not _why_not(facts)}

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel and what it needs."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """What the wheel does not bring: OpenMP, C++, and what its Fortran library is linked with."""
        return Packages(run=gcc_libraries("libgomp", "libquadmath", "libstdc++"))

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        share = f"{ctx.prefix}/share"
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run(
            "training step",
            TextFile("files/tests/mxnet_step.py", f"{share}/mxnet_step.py", ctx.text_file("mxnet_step.py")),
            TextFile("files/tests/mxnet_device", f"{share}/device", lines("gpu" if ctx.options.gpu else "cpu")),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; MXNet itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

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

    def notices(self, ctx: Context) -> list[str]:
        """That a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None or ctx.options.gpu:
            return []
        why = _why_not(ctx.facts) or "mxnet.gpu=false was asked for"
        return [f"mxnet {ctx.version} computes on the CPU, not on {gpu.model}: {why}"]


def _why_not(facts: Facts) -> str:
    """Why no package computes on the partition's GPU; empty if one does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor != "nvidia" or facts.architecture != "x86_64":
        return "there is no package for it"
    if gpu.driver is not None and Version(gpu.driver) < Version(OLDEST_DRIVER):
        return f"the node's driver is {gpu.driver}, and CUDA 11.2 needs {OLDEST_DRIVER} or newer"
    if gpu.capability is not None and Version(gpu.capability) > Version(NEWEST_CAPABILITY):
        return f"CUDA 11.2 knows GPUs up to capability {NEWEST_CAPABILITY}, and it has {gpu.capability}"
    return ""


def _wheels(ctx: Context) -> Wheels:
    """The wheel with all it needs; newer NumPys have no more of what it calls (np.bool)."""
    package = "mxnet-cu112" if ctx.options.gpu else "mxnet"
    return ctx.wheels(
        ctx.facts.listed(f"{package}-{ctx.version}"), [f"{package}=={ctx.version}", *ctx.release.values["pins"]]
    )
