"""The nGraph bridge: a graph compiler under TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Input, Run, Test, Wheels, command, run


class Ngraph(Block):
    """nGraph under TensorFlow, on CPUs.  Source: https://github.com/tensorflow/ngraph-bridge

    A program enables it with ``import ngraph_bridge`` after TensorFlow. Each release fits exactly one TensorFlow
    release.
    """

    name = "ngraph"
    needs = (need("python"), need("tensorflow"), need("tf_step"))

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel, which has its libraries in it."""
        return [_wheels(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it beside TensorFlow."""
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))

    def capabilities(self, ctx: Context) -> Capabilities:
        """Intel's OpenMP is in its wheel."""
        return Capabilities(kmp=True)

    def test(self, ctx: Context) -> list[Test]:
        """A network is trained by it: it says itself which backend it uses."""
        step = command(f"{ctx.use('python').prefix}/bin/python", "/opt/tf_step/share/tf_step.py", "ngraph_bridge")
        return [Test("training", f"{step} 2>&1", expect="NGraph using backend: CPU")]


def _wheels(ctx: Context) -> Wheels:
    name = f"ngraph-tensorflow-bridge-{ctx.version}"
    return ctx.wheels(name, [f"ngraph-tensorflow-bridge=={ctx.version}"])
