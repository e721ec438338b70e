"""OpenVINO: runs trained models on Intel's and other CPUs."""

from __future__ import annotations

from hpcgen.blocks.base import Context
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Test, TextFile, Wheels, command
from hpcgen.blocks.wheel_program import WheelBlock, share_program


class Openvino(WheelBlock):
    """OpenVINO, inference on models of other frameworks.  Source: https://github.com/openvinotoolkit/openvino

    The project's wheel. On CPUs with bfloat16 (AMX or AVX512_BF16) OpenVINO computes in that unless a program says
    ``INFERENCE_PRECISION_HINT=f32``; the one in /opt/openvino/share, which stacks run as a test, does.
    """

    name = "openvino"
    proof = "inference step"

    def wheels(self, ctx: Context) -> Wheels:
        return ctx.wheels(ctx.facts.listed(f"openvino-{ctx.version}"), [f"openvino=={ctx.version}"])

    def programs(self, ctx: Context) -> list[TextFile]:
        return [share_program(ctx, "onnx_model.py"), share_program(ctx, "openvino_step.py")]

    def test(self, ctx: Context) -> list[Test]:
        """It has a device for the CPU, and computes a small model as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        return [
            Test("version", command(python, "-c", "import openvino as o; print(o.__version__)"), expect=ctx.version),
            Test(
                "model", command(python, f"{ctx.prefix}/share/openvino_step.py", "CPU"), expect="inferences per second"
            ),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """That a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None:
            return Capabilities()
        intel = "the image has no compute runtime of Intel's" if gpu.vendor == "intel" else "it has no device for it"
        return Capabilities(gpu_unused=intel)
