"""TVM: compiles trained models for the CPU that they run on."""

from __future__ import annotations

import json

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.blocks.base import Context
from hpcgen.blocks.steps import Test, TextFile, Wheels, command
from hpcgen.blocks.wheel_program import WheelBlock, share_program, share_setting

LLVM = "17.0"
"""The LLVM that CPUs are named for: not newer than the one inside the oldest wheel."""


class Tvm(WheelBlock):
    """Apache TVM, which compiles models for the CPU they run on.  Source: https://github.com/apache/tvm

    The project's wheel, with LLVM inside. Models are imported from ONNX (``tvm.relax.frontend.onnx``) and compiled
    through Relax; Relay no longer exists. The program in /opt/tvm/share, which stacks run as a test, compiles for the
    partition's CPU, set in the file ``target`` beside it.
    """

    name = "tvm"
    proof = "compile and run a model"

    def wheels(self, ctx: Context) -> Wheels:
        """TVM, the package onnx that its frontend reads models with, and what these need."""
        name = ctx.facts.listed(f"tvm-{ctx.version}")
        values = ctx.release.values
        return ctx.wheels(name, [f"apache-tvm=={values['package']}", *values.get("pins", []), "onnx"])

    def programs(self, ctx: Context) -> list[TextFile]:
        return [
            share_program(ctx, "onnx_model.py"),
            share_program(ctx, "tvm_step.py"),
            share_setting(ctx, "target", _target(ctx)),
        ]

    def test(self, ctx: Context) -> list[Test]:
        """It compiles an ONNX model with LLVM, for any CPU, and the model computes as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        return [
            Test("version", command(python, "-c", "import tvm; print(tvm.__version__)"), expect=ctx.version),
            Test("model", command(python, f"{ctx.prefix}/share/tvm_step.py", "llvm"), expect="inferences per second"),
        ]

    def notices(self, ctx: Context) -> list[str]:
        """That a GPU is not used."""
        gpu = ctx.facts.partition.gpu
        if gpu is None:
            return []
        return [f"tvm {ctx.version} compiles for the CPU, not for {gpu.model}: the block has no way to prove the other"]


def _target(ctx: Context) -> str:
    """TVM's words for the partition's CPU: LLVM calls CPUs as GCC does."""
    flags = compiler_flags(ctx.facts.partition.cpu.target, "clang", LLVM)
    named = "-march=" if ctx.facts.architecture == "x86_64" else "-mcpu="
    cpus = [flag.removeprefix(named) for flag in flags if flag.startswith(named)]
    return json.dumps({"kind": "llvm", "mcpu": cpus[0]} if cpus else {"kind": "llvm"})
