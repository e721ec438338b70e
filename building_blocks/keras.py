"""Keras beside TensorFlow: the separate one of TensorFlow 1, and the current one."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Run, Runtime, Test, TextFile, Wheels, command, run


class Keras(Block):
    """Keras, layers and training over TensorFlow.  Source: https://github.com/keras-team/keras

    From 2.16 on TensorFlow uses Keras 3; this block sets its release. For programs that need Keras 2 there is the block
    tf_keras. TensorFlow 2.2 to 2.15 include their own Keras and need no block.
    """

    name = "keras"
    needs = (need("python"), need("tensorflow"))

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels that TensorFlow has not brought."""
        return [_wheels(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it beside TensorFlow, and write the program of the self-test."""
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        step = TextFile("files/tests/keras_step.py", f"{ctx.prefix}/share/step.py", ctx.text_file("keras_step.py"))
        yield run("training step", step)

    def runtime(self, ctx: Context) -> Runtime:
        """The program; Keras itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It is this release, and a model learns."""
        step = command(f"{ctx.use('python').prefix}/bin/python", f"{ctx.prefix}/share/step.py", "keras")
        return [Test("training", step, expect=f"keras {ctx.version} loss")]


def _wheels(ctx: Context) -> Wheels:
    lines = tuple(ctx.release.values["wheels"])
    return Wheels(f"keras-{ctx.version}", lines, hashed=True, asked=(f"keras=={ctx.version}",))
