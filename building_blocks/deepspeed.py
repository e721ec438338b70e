"""DeepSpeed: training of large models with PyTorch, with states divided among the ranks (ZeRO)."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, Wheels, command, run


class Deepspeed(Block):
    """DeepSpeed, training of large models with PyTorch.  Source: https://github.com/deepspeedai/DeepSpeed

    Its C++ and CUDA extensions are compiled when a program first uses them, so the image keeps a compiler and Ninja.
    They go into TORCH_EXTENSIONS_DIR, which jobs set as for any PyTorch program (:mod:`hpcgen.blocks.caches`).
    """

    name = "deepspeed"
    distributions = ("deepspeed",)
    needs = (need("python"), need("pytorch"), need("jit_compiler"))

    def inputs(self, ctx: Context) -> list[Input]:
        """DeepSpeed's source package, and what it needs."""
        return [_needs(ctx), _source(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """No part is compiled while it is installed."""
        return Environment(build={"DS_BUILD_OPS": "0"})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it beside PyTorch, which its setup.py looks at, and write the training step."""
        yield run("what it needs", ctx.pip(_needs(ctx)), caches=("pip",))
        install = ctx.pip(_source(ctx), compiled="deepspeed", extra=["--no-build-isolation"])
        yield run("install", install, caches=("pip",))
        step = TextFile("files/tests/deepspeed_step.py", f"{ctx.prefix}/share/step.py", ctx.text_file(STEP))
        yield run("training step", step)

    def runtime(self, ctx: Context) -> Runtime:
        """The training step; DeepSpeed itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It trains a model whose states are divided, on one rank."""
        python = f"{ctx.use('python').prefix}/bin/python"
        device = "" if ctx.use("pytorch").options.accelerator == "cpu" else "gpu"
        return [
            Test(
                "version", command(python, "-c", "import deepspeed; print(deepspeed.__version__)"), expect=ctx.version
            ),
            Test(
                "ZeRO step",
                command("env", "-u", "HPCGEN_RANKS", python, _step(ctx)),
                device=device,
                expect="size 1 stage",
            ),
            Test(
                "ZeRO step over all ranks",
                command(python, f"{ctx.use('pytorch').prefix}/share/ranks.py", python, _step(ctx)),
                device=device,
                expect="rank 0 size",
                ranks="all",
            ),
        ]

    def notices(self, ctx: Context) -> list[str]:
        """That its parts for CUDA cannot be compiled in the image, and what nobody tried."""
        if ctx.use("pytorch").options.accelerator == "xpu":
            return [f"deepspeed {ctx.version} was not tested on Intel GPUs, which its later releases support"]
        if ctx.use("pytorch").options.accelerator != "cuda" or ctx.use("pytorch").options.extensions:
            return []
        return [
            "deepspeed's CUDA extensions (FusedAdam and others) cannot be compiled in the image, which has no "
            "nvcc: use the optimizers of PyTorch, or --set pytorch.extensions=true"
        ]


STEP = "deepspeed_step.py"


def _step(ctx: Context) -> str:
    return f"{ctx.prefix}/share/step.py"


def _needs(ctx: Context) -> Wheels:
    name = ctx.facts.listed(f"deepspeed-{ctx.version}")
    fallback = ["einops", "hjson", "msgpack", "ninja", "packaging", "psutil", "py-cpuinfo", "pydantic", "tqdm"]
    return ctx.wheels(name, [*fallback, *ctx.release.values.get("needs", [])])


def _source(ctx: Context) -> Wheels:
    line = f"deepspeed=={ctx.version} --hash=sha256:{ctx.release.values['sdist']}"
    return Wheels(f"deepspeed-{ctx.version}-source", (line,), hashed=True)
