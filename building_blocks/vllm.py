"""vLLM: serves large language models on GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.nvidia import LICENCES
from hpcgen.blocks.steps import Input, Packages, Run, Test, Wheels, command, run


class Vllm(Block):
    """vLLM, a server for large language models.  Source: https://github.com/vllm-project/vllm

    The project's wheel, which brings PyTorch, CUDA, cuDNN and NCCL of its own versions, so it has no other block of
    these beside it. Some of its kernels are compiled as it starts, hence the compiler in the image. It serves on one
    node, over all GPUs that ``--tensor-parallel-size`` says.
    """

    name = "vllm"
    gpu_vendor = "nvidia"
    needs = (need("python"), need("jit_compiler"))

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels of vLLM and of all it needs."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that it is linked with."""
        return Packages(run={"apt": ["libstdc++6"], "dnf": ["libstdc++"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it."""
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))

    def test(self, ctx: Context) -> list[Test]:
        """It is there; on a node with a GPU its PyTorch computes."""
        python = f"{ctx.use('python').prefix}/bin/python"
        version = "from importlib.metadata import version; print(version('vllm'))"
        ones = "torch.ones(64, 64, device='cuda')"
        product = f"import torch, vllm; print({ones}.matmul({ones})[0, 0].item())"
        return [
            Test("version", command(python, "-c", version), expect=ctx.version),
            Test("matrix product on the GPU", command(python, "-c", product), device="gpu", expect="64.0"),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NCCL of its own; NVIDIA's licences, which installing its libraries accepts."""
        return Capabilities(gpu_collectives="NCCL", licences=LICENCES)


def _wheels(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"vllm-{ctx.version}"), [f"vllm=={ctx.version}"])
