"""The converters to ONNX: from scikit-learn, Keras and TensorFlow, and PyTorch."""

from __future__ import annotations

from typing import Literal

import msgspec

from hpcgen.blocks.base import BlockOptions, Condition, Context, Situation, need
from hpcgen.blocks.steps import Test, TextFile, Wheels, command, lines
from hpcgen.blocks.wheel_program import WheelBlock, share_program


def _from(framework: str) -> Condition:
    def converts(situation: Situation) -> bool:
        return framework in situation.options.frameworks

    return converts


class OnnxTools(WheelBlock):
    """onnx, onnxscript, skl2onnx and tf2onnx: models in the ONNX format.  Source: https://github.com/onnx

    Releases are those of the package onnx, with the newest converters that work with it. ONNX Runtime is included, so
    that converted models can be checked. The program in /opt/onnx_tools/share, which stacks run as a test, converts a
    small model of each framework and compares it.
    """

    name = "onnx_tools"
    needs = (
        need("python"),
        need("onnxruntime"),
        # The wheel: what is converted computes for moments, which pays for no build of hours.
        need("tensorflow", ">=2.20", when=_from("keras"), enough={"install": "pip"}),
        need("pytorch", ">=2.9", when=_from("pytorch")),
    )

    class Options(BlockOptions, frozen=True):
        """``frameworks``: those with models to convert.

        ``sklearn`` comes with its converter; ``keras`` brings the block tensorflow, ``pytorch``
        the block pytorch, which converts by itself with onnxscript.
        """

        frameworks: list[Literal["sklearn", "keras", "pytorch"]] = msgspec.field(default_factory=lambda: ["sklearn"])

    libraries = ()
    proof = "convert and compare"

    def wheels(self, ctx: Context) -> Wheels:
        """The converters, and what they need."""
        packages = [f"onnx=={ctx.version}", *ctx.release.values["converters"]]
        return ctx.wheels(ctx.facts.listed(f"onnx_tools-{ctx.version}"), packages)

    def programs(self, ctx: Context) -> list[TextFile]:
        chosen = lines(*ctx.options.frameworks)
        return [
            share_program(ctx, "onnx_convert.py"),
            TextFile("files/tests/onnx_frameworks", f"{ctx.prefix}/share/frameworks", chosen),
        ]

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
