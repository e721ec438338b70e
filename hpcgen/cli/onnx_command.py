"""``hpcgen onnx``: trained models as ONNX."""

from __future__ import annotations

import click

from hpcgen.cli import LazyCommands

COMMANDS = {
    "convert": "Convert an ensemble of models, and prove that it computes the same.",
    "bench": "Measure converted models: every runtime, variant and batch, in rounds.",
    "run": "Run a converted model over data files.",
    "serve-kit": "Write a kit that runs converted models on a partition.",
}


class _OnnxCommands(LazyCommands):
    """What is done with models."""

    table = COMMANDS
    module = "hpcgen.cli.onnx_{}"


@click.group("onnx", cls=_OnnxCommands)
def command() -> None:
    """Convert trained models to ONNX, prove that they compute the same, and start them."""
