"""Programs of molecular dynamics: compiled for the partition's CPU or, with CUDA, for its GPU."""

from __future__ import annotations

from typing import Any

from hpcgen.blocks.base import Block, Context, Facts, Situation
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.steps import Packages, Runtime


def with_mkl(situation: Situation) -> bool:
    """Whether MKL computes the Fourier transforms."""
    return bool(situation.options.fft == "mkl")


class MolecularDynamicsBlock(Block):
    """Base of blocks with the options ``gpu`` (``cuda`` or ``none``) and ``fft`` (``fftw3``, ``mkl`` or their own)."""

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """CUDA where it is known for what to compile it."""
        gpu = facts.partition.gpu
        known = gpu is not None and gpu.vendor == "nvidia" and gpu.capability is not None
        return {"gpu": "cuda"} if known else {}

    def precision(self, ctx: Context) -> str:
        """Of the Fourier transforms: ``single`` or ``double``."""
        return "double"

    def on_gpu(self, ctx: Context) -> bool:
        """Whether it computes on the GPU."""
        return bool(ctx.options.gpu == "cuda")

    def asked_for_cpu(self, ctx: Context) -> str:
        """The option that keeps it on the CPU where it could use the GPU."""
        return f"{self.name}.gpu=none"

    def packages(self, ctx: Context) -> Packages:
        """FFTW of the distribution."""
        if ctx.options.fft != "fftw3":
            return Packages()
        precision = self.precision(ctx)
        return Packages(
            build={"apt": ["libfftw3-dev"], "dnf": ["fftw-devel"], "zypper": ["fftw3-devel"]},
            run={"apt": [f"libfftw3-{precision}3"], "dnf": [f"fftw-libs-{precision}"], "zypper": ["libfftw3-3"]},
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)

    def capabilities(self, ctx: Context) -> Capabilities:
        return Capabilities(gpu_vendors=("nvidia",)) if self.on_gpu(ctx) else Capabilities(gpu_unused=self._why(ctx))

    def _why(self, ctx: Context) -> GpuUnused | None:
        """Why a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None:
            return None
        if self.defaults(ctx.facts):
            return GpuUnused(f"{self.asked_for_cpu(ctx)} was requested")
        if gpu.vendor == "nvidia":
            return GpuUnused("the profile does not say its compute capability (gpu.capability)")
        return GpuUnused("this block compiles only for NVIDIA GPUs")
