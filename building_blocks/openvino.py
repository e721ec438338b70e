"""OpenVINO: runs trained models on Intel's and other CPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, run


class Openvino(Block):
    """OpenVINO, inference on models of other frameworks.  Source: https://github.com/openvinotoolkit/openvino

    The project's wheel. On CPUs with bfloat16 (AMX or AVX512_BF16) OpenVINO computes in that unless a program says
    ``INFERENCE_PRECISION_HINT=f32``; the one in /opt/openvino/share, which stacks run as a test, does.
    """

    name = "openvino"
    needs = (need("python"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel and what it needs."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that it is linked with."""
        return Packages(run=gcc_libraries("libstdc++"))

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        share = f"{ctx.prefix}/share"
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run(
            "inference step",
            TextFile("files/tests/onnx_model.py", f"{share}/onnx_model.py", ctx.text_file("onnx_model.py")),
            TextFile("files/tests/openvino_step.py", f"{share}/openvino_step.py", ctx.text_file("openvino_step.py")),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; OpenVINO itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It has a device for the CPU, and computes a small model as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        return [
            Test("version", command(python, "-c", "import openvino as o; print(o.__version__)"), expect=ctx.version),
            Test(
                "model", command(python, f"{ctx.prefix}/share/openvino_step.py", "CPU"), expect="inferences per second"
            ),
        ]

    def notices(self, ctx: Context) -> list[str]:
        """That a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None:
            return []
        intel = "the image has no compute runtime of Intel's" if gpu.vendor == "intel" else "it has no device for it"
        return [f"openvino {ctx.version} computes on the CPU, not on {gpu.model}: {intel}"]


def _wheels(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"openvino-{ctx.version}"), [f"openvino=={ctx.version}"])
