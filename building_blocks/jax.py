"""JAX: array programs compiled for CPUs and GPUs."""

from __future__ import annotations

from typing import Any, Literal

from packaging.version import Version

from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.caches import JAX, of_gpus
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.gpu_collectives import gpu_networks, with_verbs
from hpcgen.blocks.nvidia import COMPANIONS, LICENCES
from hpcgen.blocks.old_driver import old_driver
from hpcgen.blocks.steps import Packages, Test, TextFile, Wheels, command
from hpcgen.blocks.wheel_program import WheelBlock, share_program, share_setting

CUDA = {"cuda13": ("580", "7.5"), "cuda12": ("525", "5.2")}
"""Oldest driver and capability for each package, the newest first. A test holds them against the table."""

OF_ROCM_6 = frozenset({"gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"})
ROCM = {"rocm7": ("6.4", OF_ROCM_6 | {"gfx950"}), "rocm60": ("6.1", OF_ROCM_6)}
"""The oldest driver and the code of each ROCm, the newest first. A test holds both against the table of rocm."""

LIBRARIES = {
    "rocm7": ["hipblaslt", "hipfft", "miopen-hip", "rccl", "rocblas", "rocm-smi-lib", "rocprofiler-sdk"],
    "rocm60": ["hipblaslt", "hipfft", "hipsolver", "miopen-hip", "rccl", "rocblas", "rocsolver"],
}
"""AMD's packages of what a plugin is linked with or loads, beside HIP.

Sources: the plugins' own lists of libraries; the names in AMD's repository of 6.4.1 in a public list of its files.
"""

EXTRAS = {"cpu": "", "cuda12": "[cuda12]", "cuda13": "[cuda13]", "rocm7": "[rocm7-local]", "rocm60": ""}


def _by_rocm_7(situation: Situation) -> bool:
    return bool(situation.options.accelerator == "rocm7")


def _by_rocm_6(situation: Situation) -> bool:
    return bool(situation.options.accelerator == "rocm60")


class Jax(WheelBlock):
    """JAX, array programs with gradients, compiled by XLA.  Source: https://github.com/jax-ml/jax

    The project's wheels. With CUDA they bring their own CUDA, cuDNN and NCCL, so the host only provides the driver;
    with ROCm they use the image's ROCm. Between nodes JAX talks over NCCL, RCCL or, on CPUs, Gloo, never over MPI:
    ``ranks.py`` in /opt/jax/share tells each rank of a job its place (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT),
    whatever launched it, and ``jax_step.py`` beside it shows how to pass it to ``jax.distributed``.
    """

    name = "jax"
    distributions = ("jax",)
    companions = ("jaxlib", "jax-cuda*", "jax-rocm*", *COMPANIONS)
    needs = (need("python"), need("rocm", ">=7,<8", when=_by_rocm_7), need("rocm", ">=6,<7", when=_by_rocm_6))

    class Options(BlockOptions, frozen=True):
        """``accelerator``: what computes.

        By default ``cuda13`` or ``cuda12`` on NVIDIA's GPUs, depending on their capability and driver, ``rocm7`` or
        ``rocm60`` on AMD's, depending on their architecture and driver, and ``cpu`` elsewhere.
        """

        accelerator: Literal["cpu", "cuda12", "cuda13", "rocm7", "rocm60"] = "cpu"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The newest that the partition's GPU and driver can use."""
        best = [name for name in (*CUDA, *ROCM) if not _why_not(facts, name)]
        return {"accelerator": best[0]} if best else {}

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """CUDA 12, which the newer GPUs and drivers run too, for releases from before CUDA 13; and so with ROCm 6."""
        older = {"cuda13": "cuda12", "rocm7": "rocm60"}
        others = tuple(old for new, old in older.items() if not _why_not(facts, new))
        return {"accelerator": others} if others else {}

    def wheels(self, ctx: Context) -> Wheels:
        """JAX and all it needs."""
        accelerator = ctx.options.accelerator
        name = ctx.facts.listed(f"jax-{ctx.version}" if accelerator == "cpu" else f"jax-{accelerator}-{ctx.version}")
        pins = [*ctx.release.values.get("pins", []), *ctx.release.values.get(f"pins_{accelerator}", [])]
        return ctx.wheels(name, [f"jax{EXTRAS[accelerator]}=={ctx.version}", *pins])

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that it is linked with; verbs for the NCCL or RCCL that it uses."""
        packages = super().packages(ctx)
        if libraries := LIBRARIES.get(ctx.options.accelerator):
            packages = Packages(run={**packages.run, "apt": [*packages.run["apt"], *libraries]})
        return packages if ctx.options.accelerator == "cpu" else with_verbs(ctx, packages)

    def programs(self, ctx: Context) -> list[TextFile]:
        """The training step, and what tells each rank its place."""
        return [
            share_program(ctx, "torch_ranks.py", "ranks.py"),
            share_program(ctx, "jax_step.py"),
            share_setting(ctx, "platform", _platform(ctx)),
        ]

    def test(self, ctx: Context) -> list[Test]:
        """A jitted gradient is NumPy's, by one process and by two over the loopback; on a node with a GPU, there."""
        python = f"{ctx.use('python').prefix}/bin/python"
        step = f"{ctx.prefix}/share/jax_step.py"
        tests = [
            Test("version", command(python, "-c", "import jax; print(jax.__version__)"), expect=ctx.version),
            Test("training step", command(python, step, "cpu"), expect="over 1 rank"),
            Test("two processes", command(python, step, "cpu", "2"), expect="over 2 ranks"),
        ]
        if ctx.options.accelerator != "cpu":
            tests.append(Test("training step on the GPU", command(python, step), device="gpu", expect="over 1 rank"))
        everywhere = command(python, f"{ctx.prefix}/share/ranks.py", python, step)
        return [*tests, Test("training step over all ranks", everywhere, expect=" ranks", ranks="all")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NCCL or RCCL of its own; NVIDIA's licences, which installing its libraries accepts."""
        if ctx.options.accelerator == "cpu":
            return Capabilities(cpu_collectives="Gloo", gpu_unused=self._unused(ctx), caches=JAX)
        if ctx.options.accelerator in ROCM:
            caches = (*JAX, *of_gpus(["amd"]))
            return Capabilities(
                gpu_vendors=("amd",), gpu_collectives="RCCL", gpu_networks=gpu_networks(ctx), caches=caches
            )
        vendors = ("nvidia",)
        return Capabilities(
            gpu_vendors=vendors,
            gpu_collectives="NCCL",
            gpu_networks=gpu_networks(ctx),
            licences=LICENCES,
            caches=(*JAX, *of_gpus(vendors)),
        )

    def _unused(self, ctx: Context) -> GpuUnused | None:
        """Why a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None:
            return None
        last = "rocm60" if gpu.vendor == "amd" else "cuda12"
        return _why_not(ctx.facts, last) or GpuUnused("jax.accelerator=cpu was requested")


def _why_not(facts: Facts, accelerator: str) -> GpuUnused | None:
    """Why a package does not compute on the partition's GPU; None if it does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor != ("amd" if accelerator in ROCM else "nvidia"):
        return GpuUnused("no package has code for it")
    if accelerator in ROCM:
        (driver, targets), code = ROCM[accelerator], gpu.target
        known = facts.architecture == "x86_64" and (code is None or code in targets)
    else:
        driver, capability = CUDA[accelerator]
        code = gpu.capability
        known = code is None or Version(code) >= Version(capability)
    if not known:
        return GpuUnused(f"the packages with {accelerator} have no code for {code} on {facts.architecture}")
    return old_driver(gpu, driver, f"{accelerator} needs")


def _platform(ctx: Context) -> str:
    """JAX's own name of what computes."""
    return "cpu" if ctx.options.accelerator == "cpu" else "gpu"
