"""vLLM: serves large language models on GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.caches import of_gpus, of_packages
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.gpu_collectives import gpu_networks, with_verbs
from hpcgen.blocks.hub import from_hub, hub_environment, hub_image, hub_packages
from hpcgen.blocks.nvidia import LICENCES
from hpcgen.blocks.steps import (
    Environment,
    Image,
    Input,
    Packages,
    Part,
    Run,
    Test,
    TextFile,
    Wheels,
    command,
    lines,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH


def _from_wheels(situation: Situation) -> bool:
    return not from_hub(situation)


def _own_python(situation: Situation) -> bool:
    """The images for AMD are of a Ubuntu whose own Python is older than theirs."""
    return bool(situation.options.accelerator == "rocm")


def _ubuntus_python(situation: Situation) -> bool:
    return not _own_python(situation)


class Vllm(Block):
    """vLLM, a server for large language models.  Source: https://github.com/vllm-project/vllm

    The project's wheel, which brings its own versions of PyTorch, CUDA, cuDNN and NCCL, or its image, required for
    ROCm; so it is not combined with blocks for these. Some of its kernels are compiled at start, hence the compiler in
    the image. It serves on one node, over as many GPUs as ``--tensor-parallel-size`` says, and with the block ray over
    several nodes.
    """

    name = "vllm"
    distributions = ("vllm",)
    needs = (
        need("python", when=_ubuntus_python),
        need("python", when=_own_python, enough={"obtain": "standalone"}),
        need("jit_compiler", when=_from_wheels),
        need("ubuntu", when=from_hub),
    )

    class Options(BlockOptions, frozen=True):
        """``accelerator``: the kind of GPU, by default the partition's.

        ``install``: ``pip`` takes the wheels, ``hub`` starts from the project's or AMD's image (10 GB and more), which
        is the only way for ``rocm``: the package index has no wheels for it.
        """

        accelerator: Literal["cuda", "rocm"] = "cuda"
        install: Literal["pip", "hub"] = "pip"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """What there is for the partition's GPU."""
        gpu = facts.partition.gpu
        return {"accelerator": "rocm", "install": "hub"} if gpu is not None and gpu.vendor == "amd" else {}

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels of vLLM and of all it needs."""
        return [_wheels(ctx)] if ctx.options.install == "pip" else []

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """The project's or AMD's image, if that is asked for."""
        return hub_image(ctx)

    def environment(self, ctx: Context) -> Environment:
        """What keeps such an image's own software working."""
        return hub_environment(ctx) if ctx.options.install == "hub" else Environment()

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that the wheels are linked with."""
        if ctx.options.install == "hub":
            return Packages()
        return with_verbs(ctx, Packages(run=gcc_libraries("libstdc++")))

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it."""
        if ctx.options.install == "hub":
            yield run("use the image's vLLM", hub_packages(ctx), _program(ctx))
        else:
            yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))

    def test(self, ctx: Context) -> list[Test]:
        """It is the release, and its PyTorch computes; on a node with a GPU, there."""
        python = f"{ctx.use('python').prefix}/bin/python"
        version = "from importlib.metadata import version; print(version('vllm'))"
        ones = "torch.ones(64, 64{device})"
        product = f"print({ones}.matmul({ones})[0, 0].item())"
        here = f"import torch; {product.format(device='')}"
        there = f"import torch, vllm; {product.format(device=', device=' + repr('cuda'))}"
        tests = [Test("version", command(python, "-c", version), expect=ctx.version)]
        if ctx.options.install == "hub":
            tests.append(Test("program", command("test", "-x", f"{ctx.use('python').prefix}/bin/vllm")))
        return [
            *tests,
            Test("matrix product on the CPU", command(python, "-c", here), expect="64.0"),
            Test("matrix product on the GPU", command(python, "-c", there), device="gpu", expect="64.0"),
        ]

    def suits_pip(self, ctx: Context) -> bool:
        """Not beside the packages of the project's or AMD's image."""
        return bool(ctx.options.install == "pip")

    def capabilities(self, ctx: Context) -> Capabilities:
        """NCCL or RCCL of its own; NVIDIA's licences, which installing its libraries accepts."""
        vendors = ("amd",) if ctx.options.accelerator == "rocm" else ("nvidia",)
        caches = (*of_packages(["vllm"]), *of_gpus(vendors))
        if ctx.options.accelerator == "rocm":
            return Capabilities(gpu_vendors=vendors, gpu_collectives="RCCL", caches=caches)
        networks = gpu_networks(ctx) if ctx.options.install == "pip" else ()
        return Capabilities(
            gpu_vendors=vendors, gpu_collectives="NCCL", gpu_networks=networks, licences=LICENCES, caches=caches
        )


def _program(ctx: Context) -> list[Part]:
    """``vllm`` by the Python that everything else is installed into; the image's own sees nothing of that."""
    prefix, scratch = ctx.use("python").prefix, f"{SCRATCH}/vllm"
    text = lines(f"#!{prefix}/bin/python", "from vllm.entrypoints.cli.main import main", "main()")
    install = command("install", "-m", "755", scratch, f"{prefix}/bin/vllm")
    return [TextFile("files/settings/vllm", scratch, text), install]


def _wheels(ctx: Context) -> Wheels:
    pins = ctx.release.values.get("pins", [])
    return ctx.wheels(ctx.facts.listed(f"vllm-{ctx.version}"), [f"vllm=={ctx.version}", *pins])
