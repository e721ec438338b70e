"""ONNX Runtime: runs trained models that other frameworks export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from packaging.version import Version

from hpcgen.block import Block, BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.steps import Input, Packages, Run, Runtime, Test, Wheels, command, run, write_lines

PACKAGES = {
    "cpu": "onnxruntime",
    "cuda": "onnxruntime-gpu",
    "tensorrt": "onnxruntime-gpu",
    "migraphx": "onnxruntime-migraphx",
}
"""The package that has each provider."""

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
"""ONNX Runtime's own name of each provider."""

OLDEST_DRIVER = "450.80.02"
"""The first NVIDIA driver that runs a CUDA that one of the packages is linked with: 11.8. A test holds it against
the tables."""

AMD_TARGETS = frozenset({"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"})
"""What the ROCm that the packages are linked with has code for. A test holds it against the tables."""


def _on_nvidia(situation: Situation) -> bool:
    return situation.options.provider in ("cuda", "tensorrt")


def _by_tensorrt(situation: Situation) -> bool:
    return bool(situation.options.provider == "tensorrt")


def _by_migraphx(situation: Situation) -> bool:
    return bool(situation.options.provider == "migraphx")


LIBRARIES = {"obtain": "wheels"}


class Onnxruntime(Block):
    """ONNX Runtime, inference on models in the ONNX format.  Source: https://github.com/microsoft/onnxruntime

    It comes as the project's wheel, or AMD's for MIGraphX. A program says which provider and how many threads it
    wants; the one in /opt/onnxruntime/share, which stacks run as a test, takes the provider of the image and
    OMP_NUM_THREADS.
    """

    name = "onnxruntime"
    needs = (
        need("python"),
        need("cuda", when=_on_nvidia, enough=LIBRARIES),
        need("cudnn", when=_on_nvidia, enough=LIBRARIES),
        need("tensorrt", when=_by_tensorrt),
        need("migraphx", when=_by_migraphx),
    )

    class Options(BlockOptions, frozen=True):
        """``provider``: what computes.

        By default ``cuda`` on NVIDIA's GPUs and ``migraphx`` on AMD's where a package has code for GPU and driver,
        and ``cpu`` elsewhere; ``tensorrt`` only if it is asked for.
        """

        provider: Literal["cpu", "cuda", "tensorrt", "migraphx"] = "cpu"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The provider for the partition's GPU."""
        gpu = facts.partition.gpu
        if gpu is None or _why_not(facts):
            return {}
        return {"provider": {"nvidia": "cuda", "amd": "migraphx"}[gpu.vendor]}

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """On ARM, packages with CUDA begin with 1.29."""
        gpu = facts.partition.gpu
        if facts.architecture != "aarch64" or gpu is None or gpu.vendor != "nvidia":
            return []
        return [SiteRange(">=1.29", "system.architecture", "the architecture aarch64, for which there is no older one")]

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel and what it needs."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that the wheel is linked with."""
        return Packages(run={"apt": ["libstdc++6"], "dnf": ["libstdc++"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        yield run("ONNX Runtime", ctx.pip(_wheels(ctx)), caches=("pip",))
        share = f"{ctx.prefix}/share"
        yield run(
            "inference step",
            command("mkdir", "-p", share),
            write_lines(f"{share}/onnx_step.py", ctx.text_file("onnx_step.py")),
            write_lines(f"{share}/provider", PROVIDERS[ctx.options.provider]),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; ONNX Runtime itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It loads, has the provider, and computes a small model as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        provider = PROVIDERS[ctx.options.provider]
        names = "import onnxruntime as o; print(o.__version__)"
        known = "import onnxruntime as o; print(*o.get_available_providers())"
        step = f"{ctx.prefix}/share/onnx_step.py"
        device = "" if ctx.options.provider == "cpu" else "gpu"
        tests = [
            Test("version", command(python, "-c", names), expect=ctx.version),
            Test("provider", command(python, "-c", known), expect=provider),
            Test("model", command(python, step, provider), device=device, expect="inferences per second"),
        ]
        if ctx.options.provider != "cpu":
            tests.insert(2, Test("libraries of the provider", _finds_all(ctx.options.provider)))
        return tests

    def notices(self, ctx: Context) -> list[str]:
        """That a GPU is not used."""
        if ctx.options.provider != "cpu" or ctx.facts.partition.gpu is None:
            return []
        why = _why_not(ctx.facts) or "onnxruntime.provider=cpu was asked for"
        return [f"onnxruntime {ctx.version} computes on the CPU, not on {ctx.facts.partition.gpu.model}: {why}"]


def _why_not(facts: Facts) -> str:
    """Why no package computes on the partition's GPU; empty if one does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor == "intel":
        return "no package of the project has a provider for it"
    if gpu.vendor == "nvidia" and gpu.driver is not None and Version(gpu.driver) < Version(OLDEST_DRIVER):
        return f"the node's driver is {gpu.driver}, and the packages with CUDA need {OLDEST_DRIVER} or newer"
    if gpu.vendor == "amd" and gpu.target is not None and gpu.target not in AMD_TARGETS:
        return f"the ROCm that AMD's packages are linked with has no code for {gpu.target}"
    return ""


def _finds_all(provider: str) -> str:
    """A command that fails if a library is missing that the provider is linked with; the driver's is the host's."""
    library = f"/opt/python/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime_providers_{provider}.so"
    return f"ls {library} > /dev/null && ldd {library} | grep 'not found' | grep -vc 'libcuda.so.1 ' | grep -qx 0"


def _wheels(ctx: Context) -> Wheels:
    package = PACKAGES[ctx.options.provider]
    # The lists' hashes are those of the x86_64 wheels.
    architecture = ctx.facts.architecture
    name = f"{package}-{ctx.version}" if architecture == "x86_64" else f"{package}-{ctx.version}-{architecture}"
    return ctx.wheels(name, [f"{package}=={ctx.version}", *ctx.release.values.get("pins", [])])
