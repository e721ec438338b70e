"""Keras 2 beside a TensorFlow that brings Keras 3."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, Wheels, command, run


class TfKeras(Block):
    """Keras 2, for programs that were written before Keras 3.  Source: https://github.com/keras-team/tf-keras

    It is TensorFlow's ``tf.keras``, because the image sets TF_USE_LEGACY_KERAS.
    """

    name = "tf_keras"
    needs = (need("python"), need("tensorflow"))

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel; what it needs TensorFlow has brought."""
        return [_wheels(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """What makes it ``tf.keras``."""
        return Environment(both={"TF_USE_LEGACY_KERAS": "1"})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it beside TensorFlow, and write the program of the self-test."""
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        step = TextFile("files/tests/keras_step.py", f"{ctx.prefix}/share/step.py", ctx.text_file("keras_step.py"))
        yield run("training step", step)

    def runtime(self, ctx: Context) -> Runtime:
        """The program; Keras itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def suits_pip(self, ctx: Context) -> bool:
        """It asks for the package tensorflow; without a GPU the one that is there is called tensorflow-cpu."""
        return False

    def test(self, ctx: Context) -> list[Test]:
        """TensorFlow shows this release, and a model learns."""
        step = command(f"{ctx.use('python').prefix}/bin/python", f"{ctx.prefix}/share/step.py", "tf_keras")
        return [Test("training", step, expect=f"tf_keras {ctx.version} loss")]


def _wheels(ctx: Context) -> Wheels:
    return Wheels(f"tf-keras-{ctx.version}", (str(ctx.release.values["wheel"]),), hashed=True)
