"""TVM: compiles trained models for the CPU that they run on."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, lines, run
from hpcgen.platform.microarchitecture import compiler_flags

LLVM = "17.0"
"""The LLVM that CPUs are named for: not newer than the one inside the oldest wheel."""


class Tvm(Block):
    """Apache TVM, which compiles models for the CPU they run on.  Source: https://github.com/apache/tvm

    The project's wheel, with LLVM inside. Models come in as ONNX (``tvm.relax.frontend.onnx``) and are compiled
    through Relax; Relay is no more. The program in /opt/tvm/share, which stacks run as a test, compiles for the
    partition's CPU, by the target in the file ``target`` beside it.
    """

    name = "tvm"
    needs = (need("python"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels of TVM, of the package onnx that its frontend reads models with, and what these need."""
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that it is linked with."""
        return Packages(run=gcc_libraries("libstdc++"))

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        share = f"{ctx.prefix}/share"
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run(
            "compile and run a model",
            TextFile("files/tests/onnx_model.py", f"{share}/onnx_model.py", ctx.text_file("onnx_model.py")),
            TextFile("files/tests/tvm_step.py", f"{share}/tvm_step.py", ctx.text_file("tvm_step.py")),
            TextFile("files/tests/tvm_target", f"{share}/target", lines(_target(ctx))),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; TVM itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

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


def _wheels(ctx: Context) -> Wheels:
    name = ctx.facts.listed(f"tvm-{ctx.version}")
    values = ctx.release.values
    return ctx.wheels(name, [f"apache-tvm=={values['package']}", *values.get("pins", []), "onnx"])


def _target(ctx: Context) -> str:
    """TVM's words for the partition's CPU: LLVM calls CPUs as GCC does."""
    flags = compiler_flags(ctx.facts.partition.cpu.target, "clang", LLVM)
    named = "-march=" if ctx.facts.architecture == "x86_64" else "-mcpu="
    cpus = [flag.removeprefix(named) for flag in flags if flag.startswith(named)]
    return json.dumps({"kind": "llvm", "mcpu": cpus[0]} if cpus else {"kind": "llvm"})
