"""ONNX Runtime: runs trained models that other frameworks export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.block import Block, BlockOptions, Context, need
from hpcgen.steps import Input, Packages, Run, Runtime, Test, Wheels, command, run, write_lines

PACKAGES = {"cpu": "onnxruntime"}
"""The package that has each provider."""

PROVIDERS = {"cpu": "CPUExecutionProvider"}
"""ONNX Runtime's own name of each provider."""


class Onnxruntime(Block):
    """ONNX Runtime, inference on models in the ONNX format.  Source: https://github.com/microsoft/onnxruntime

    It comes as the project's wheel. A program says how many threads it wants; the one in
    /opt/onnxruntime/share, which stacks run as a test, takes OMP_NUM_THREADS.
    """

    name = "onnxruntime"
    needs = (need("python"),)

    class Options(BlockOptions, frozen=True):
        """``provider``: what computes; the CPU for now."""

        provider: Literal["cpu"] = "cpu"

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel and what it needs."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that the wheel is linked with."""
        return Packages(run={"apt": ["libstdc++6"], "dnf": ["libstdc++"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        yield run("ONNX Runtime", ctx.pip(_wheels(ctx)), caches=("pip",))
        share = f"{ctx.prefix}/share"
        yield run(
            "inference step",
            command("mkdir", "-p", share),
            write_lines(f"{share}/onnx_step.py", ctx.text_file("onnx_step.py")),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; ONNX Runtime itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It loads, has the provider, and computes a small model as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        provider = PROVIDERS[ctx.options.provider]
        names = "import onnxruntime as o; print(o.__version__)"
        known = "import onnxruntime as o; print(*o.get_available_providers())"
        step = f"{ctx.prefix}/share/onnx_step.py"
        return [
            Test("version", command(python, "-c", names), expect=ctx.version),
            Test("provider", command(python, "-c", known), expect=provider),
            Test("model", command(python, step, provider), expect="inferences per second"),
        ]


def _wheels(ctx: Context) -> Wheels:
    package = PACKAGES[ctx.options.provider]
    # The lists' hashes are those of the x86_64 wheels.
    architecture = ctx.facts.architecture
    name = f"{package}-{ctx.version}" if architecture == "x86_64" else f"{package}-{ctx.version}-{architecture}"
    return ctx.wheels(name, [f"{package}=={ctx.version}", *ctx.release.values.get("pins", [])])
