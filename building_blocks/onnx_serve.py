"""The program that runs converted models over many data files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.steps import Input, Run, Runtime, Test, command, run
from hpcgen.blocks.wheel_program import share_program, share_setting


def _in_onnxruntime(situation: Situation) -> bool:
    return bool(situation.options.runtime == "onnxruntime")


def _in_openvino(situation: Situation) -> bool:
    return bool(situation.options.runtime == "openvino")


class OnnxServe(Block):
    """Runs ONNX models over many data files, as one task of an array, and resumes where it stopped. Source: hpcgen

    It computes only with the image's provider: if the GPU does not work, it ends with status 76.
    """

    name = "onnx_serve"
    needs = (
        need("python"),
        need("onnxruntime", when=_in_onnxruntime),
        need("openvino", when=_in_openvino),
    )

    class Options(BlockOptions, frozen=True):
        """``runtime``: what computes; the provider of ONNX Runtime is an option of that block."""

        runtime: Literal["onnxruntime", "openvino"] = "onnxruntime"

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the programs are files of the kit."""
        return []

    def build(self, ctx: Context) -> Iterable[Run]:
        """The program in its parts, the one that tests it, and the image's provider."""
        names = ("onnx_infer.py", "onnx_arrays.py", "onnx_sessions.py", "onnx_infer_check.py")
        yield run(
            "inference over files",
            *(share_program(ctx, name) for name in names),
            share_setting(ctx, "provider", _provider(ctx)),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It computes what NumPy does, and does not compute it twice."""
        python, share = f"{ctx.use('python').prefix}/bin/python", f"{ctx.prefix}/share"
        model = f"{ctx.use(ctx.options.runtime).prefix}/share"
        device = "" if _provider(ctx) in ("cpu", "openvino") else "gpu"
        words = command(python, f"{share}/onnx_infer_check.py", model)
        return [Test("inference over files", words, device=device, expect="inference over files works")]


def _provider(ctx: Context) -> str:
    """What the program calls it."""
    if ctx.options.runtime == "openvino":
        return "openvino"
    return str(ctx.use("onnxruntime").options.provider)
