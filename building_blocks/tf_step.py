"""The small training program that stacks with TensorFlow on one node run as a test."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Runtime, Test, TextFile, command, lines, run


class TfStep(Block):
    """Trains a small network with TensorFlow, and compares what it computes with NumPy.  Source: hpcgen

    It works with every TensorFlow from 1.4 on, and checks that XLA compiled something if TF_XLA_FLAGS enables it.
    """

    name = "tf_step"
    needs = (need("python"), need("tensorflow"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the program is a file of the kit."""
        return []

    def build(self, ctx: Context) -> Iterable[Run]:
        """The program, and beside it what it has to compute on."""
        share = f"{ctx.prefix}/share"
        yield run(
            "training step",
            TextFile("files/tests/tf_step.py", f"{share}/tf_step.py", ctx.text_file("tf_step.py")),
            TextFile("files/tests/tf_device", f"{share}/device", lines(_device(ctx))),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It learns."""
        python, step = f"{ctx.use('python').prefix}/bin/python", f"{ctx.prefix}/share/tf_step.py"
        device = "gpu" if _device(ctx) == "gpu" else ""
        return [Test("training", command(python, step), device=device, expect="images per second")]


def _device(ctx: Context) -> str:
    gpu, wanted = ctx.facts.partition.gpu, ctx.use("tensorflow").options.gpu
    has_one = gpu is not None and gpu.vendor == "nvidia"
    return "gpu" if (has_one if wanted is None else wanted) else "cpu"
