"""OpenVINO: runs trained models on Intel's and other CPUs, and on Intel's GPUs."""

from __future__ import annotations

from typing import Literal

from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.steps import Test, TextFile, Wheels, command
from hpcgen.blocks.wheel_program import WheelBlock, share_program, share_setting


def _on_gpu(situation: Situation) -> bool:
    return bool(situation.options.device == "gpu")


def _why_not(facts: Facts) -> GpuUnused | None:
    """Why its plug-in for GPUs is of no use on the partition; None where it is of use."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor != "intel":
        return GpuUnused("it has no device for it")
    if facts.architecture == "x86_64":
        return None
    return GpuUnused(f"its wheel for {facts.architecture} has no plug-in for GPUs")


class Openvino(WheelBlock):
    """OpenVINO, inference on models of other frameworks.  Source: https://github.com/openvinotoolkit/openvino

    The project's wheel, which has a plug-in for Intel's GPUs on x86_64; it uses OpenCL from Intel's compute runtime and
    half precision. On CPUs with bfloat16 (AMX or AVX512_BF16) OpenVINO uses bfloat16. ``INFERENCE_PRECISION_HINT=f32``
    overrides both; the program in /opt/openvino/share, which stacks run as a test, sets it.
    """

    name = "openvino"
    proof = "inference step"
    needs = (*WheelBlock.needs, need("intel_gpu", when=_on_gpu))

    class Options(BlockOptions, frozen=True):
        """``device``: what the stacks' program runs on; ``gpu`` adds Intel's compute runtime."""

        device: Literal["cpu", "gpu"] = "cpu"

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """The GPU where there is one that it can use."""
        return {} if _why_not(facts) else {"device": ("gpu",)}

    def wheels(self, ctx: Context) -> Wheels:
        return ctx.wheels(ctx.facts.listed(f"openvino-{ctx.version}"), [f"openvino=={ctx.version}"])

    def programs(self, ctx: Context) -> list[TextFile]:
        step = share_program(ctx, "openvino_step.py")
        return [share_program(ctx, "onnx_model.py"), step, share_setting(ctx, "device", ctx.options.device.upper())]

    def test(self, ctx: Context) -> list[Test]:
        """It has a device for the CPU, and computes a small model as NumPy does; on a node with a GPU, there too."""
        python = f"{ctx.use('python').prefix}/bin/python"
        step = f"{ctx.prefix}/share/openvino_step.py"
        on_gpu = Test("model on the GPU", command(python, step, "GPU"), device="gpu", expect="computes on GPU")
        return [
            Test("version", command(python, "-c", "import openvino as o; print(o.__version__)"), expect=ctx.version),
            Test("model", command(python, step, "CPU"), expect="inferences per second"),
            *([on_gpu] if ctx.options.device == "gpu" else []),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """Whose GPUs it computes on, or why it leaves one alone; that it ends with tcmalloc (seen on Debian 12)."""
        ends = {"tcmalloc": "free(): invalid pointer"}
        if ctx.options.device == "gpu":
            return Capabilities(gpu_vendors=("intel",), not_with_malloc=ends)
        on_gpu_node = ctx.facts.partition.gpu is not None
        unused = _why_not(ctx.facts) or GpuUnused("openvino.device is cpu")
        return Capabilities(gpu_unused=unused if on_gpu_node else None, not_with_malloc=ends)
