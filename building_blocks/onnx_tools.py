"""The converters to ONNX: from scikit-learn, Keras and TensorFlow, and PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Condition, Context, Situation, need
from hpcgen.blocks.steps import Input, Run, Runtime, Test, TextFile, Wheels, command, lines, run


def _from(framework: str) -> Condition:
    def converts(situation: Situation) -> bool:
        return framework in situation.options.frameworks

    return converts


class OnnxTools(Block):
    """onnx, onnxscript, skl2onnx and tf2onnx: models in the ONNX format.  Source: https://github.com/onnx

    Releases are those of the package onnx; the converters are the newest that go with it. ONNX Runtime comes too,
    because a converted model is worth what it computes. The program in /opt/onnx_tools/share, which stacks run as a
    test, converts a small model of each framework and compares it.
    """

    name = "onnx_tools"
    needs = (
        need("python"),
        need("onnxruntime"),
        need("tensorflow", ">=2.20", when=_from("keras")),
        need("pytorch", ">=2.9", when=_from("pytorch")),
    )

    class Options(BlockOptions, frozen=True):
        """``frameworks``: whose models are converted.

        ``sklearn`` comes with its converter; ``keras`` brings the block tensorflow, ``pytorch``
        the block pytorch, which converts by itself with onnxscript.
        """

        frameworks: list[Literal["sklearn", "keras", "pytorch"]] = msgspec.field(default_factory=lambda: ["sklearn"])

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels of the converters, and what they need."""
        return [_wheels(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install them, and write the program that stacks run as a test."""
        share = f"{ctx.prefix}/share"
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run(
            "convert and compare",
            TextFile("files/tests/onnx_convert.py", f"{share}/onnx_convert.py", ctx.text_file("onnx_convert.py")),
            TextFile("files/tests/onnx_frameworks", f"{share}/frameworks", lines(*ctx.options.frameworks)),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; the packages are in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """A converted model of each framework computes as the framework does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        program = f"{ctx.prefix}/share/onnx_convert.py"
        return [
            Test("version", command(python, "-c", "import onnx; print(onnx.__version__)"), expect=ctx.version),
            *(
                Test(f"model of {name}", command(python, program, name), expect=f"converted {name}")
                for name in ctx.options.frameworks
            ),
        ]


def _wheels(ctx: Context) -> Wheels:
    packages = [f"onnx=={ctx.version}", *ctx.release.values["converters"]]
    return ctx.wheels(ctx.facts.listed(f"onnx_tools-{ctx.version}"), packages)
