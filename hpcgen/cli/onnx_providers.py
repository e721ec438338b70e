"""``--provider`` of ``hpcgen onnx``: what computes models, and why some of what ONNX Runtime names is not there."""

from __future__ import annotations

from typing import Any

import click

PROVIDERS = ("cpu", "openvino", "cuda", "tensorrt", "migraphx")
"""A test holds them against the record, which takes longer to load."""

_NOT_THERE = {
    **dict.fromkeys(
        ("dnnl", "onednn"),
        "no package of ONNX Runtime has it, it would have to be compiled; `openvino` computes by oneDNN's kernels, "
        "and `cpu` by ONNX Runtime's own",
    ),
    "rocm": "ONNX Runtime has had none since 1.23; `migraphx` computes on AMD's GPUs",
}
"""Sources: the project's page on execution providers, the package index on 2026-11-20, microsoft/onnxruntime#25181."""


class ProviderChoice(click.Choice):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.2
    """A provider that there is; of others it says what to take."""

    def __init__(self) -> None:
        super().__init__(PROVIDERS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Source: click's documentation of parameter types."""
        if str(value) in _NOT_THERE:
            self.fail(f"{value!r} is no provider here: {_NOT_THERE[str(value)]}", param, ctx)
        return super().convert(value, param, ctx)
