"""The HiT report's table of inference, its figures beside those that are measured here.

    hpcgen onnx bench converted --origin examples/onnx/report.yaml --image IMAGE --rounds 15 --json > times.json
    python benchmarks/onnx/table.py times.json

Of ``examples/onnx/more.yaml`` it prints a table without the report's columns.
Rows of devices that the figures are not from stay empty on our side.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

MODELS = {"alexnet": "AlexNet", "squeezenet": "SqueezeNet", "bert": "BERT-base-uncased"}
DEVICES = ("CPU", "P40", "V100")


class Reported(NamedTuple):
    """Seconds in the report: PyTorch, ONNX Runtime."""

    pytorch: float
    onnxruntime: float


REPORT = {
    "alexnet": (Reported(2.3, 3.14), Reported(0.12, 0.17), Reported(0.07, 0.1)),
    "squeezenet": (Reported(5.58, 1.29), Reported(0.21, 0.36), Reported(0.22, 0.11)),
    "bert": (Reported(3.1, 2.4), Reported(0.825, 0.3), Reported(0.9, 0.178)),
}
"""Inference latency by model, for each device.  Source: HiT, portability of deep-learning applications in HPC,
University of Delaware, 2021; it gives none for the MI50."""

HEAD = (
    "model", "device", "report: PyTorch (s)", "ONNX Runtime (s)", "times as fast",
    "here: PyTorch (ms)", "ONNX Runtime (ms)", "times as fast", "OpenVINO (ms)", "times as fast",
)  # fmt: skip


def rows(times: list[dict[str, Any]], device: str = "CPU", batch: int = 1) -> list[list[str]]:
    """The rows of the table.

    Parameters
    ----------
    times: the ``runtimes`` of ``hpcgen onnx bench --json``; ``device``: which of the report's they are from.
    """
    found = []
    for model, title in MODELS.items():
        for name, reported in zip(DEVICES, REPORT[model], strict=True):
            row = [title, name, f"{reported.pytorch:g}", f"{reported.onnxruntime:g}"]
            row.append(f"{reported.pytorch / reported.onnxruntime:.2f}")
            found.append(row + (_measured(times, model, batch) if name == device else [""] * 5))
    return found


MORE_HEAD = (
    "model", "batch", "framework", "here: framework (ms)",
    "ONNX Runtime (ms)", "times as fast", "OpenVINO (ms)", "times as fast",
)  # fmt: skip


MORE = {
    "alexnet-keras": ("AlexNet", "Keras"),
    "candle": ("CANDLE-like", "PyTorch"),
    "candle-keras": ("CANDLE-like", "Keras"),
    "candle-saved": ("CANDLE-like", "TensorFlow (SavedModel)"),
    "boosting": ("gradient boosting", "scikit-learn"),
    "pipeline": ("pipeline", "scikit-learn"),
}
"""Models of ``examples/onnx/more.yaml``: what they are, and what they are from."""


def more(times: list[dict[str, Any]]) -> list[list[str]]:
    """The rows of models that the report has not: one for each model and batch that was measured."""
    own = [one["timing"] for one in times if one["timing"]["runtime"] == "framework"]
    return [
        [title, f"{each['batch']}", f"{framework} {each['version']}", *_measured(times, each["model"], each["batch"])]
        for each in own
        for title, framework in [MORE.get(each["model"], ("", ""))]
        if title
    ]


def _measured(times: list[dict[str, Any]], model: str, batch: int) -> list[str]:
    cells = []
    for runtime, variant in (("framework", ""), ("onnxruntime", ""), ("openvino", "openvino")):
        one = next((each for each in times if _is(each["timing"], model, batch, runtime, variant)), {})
        seconds, ratio = one.get("seconds"), one.get("ratio")
        cells.append(f"{seconds['value'] * 1e3:.4g}" if seconds else "")
        if runtime != "framework":
            cells.append(_ratio(ratio) if ratio else "")
    return cells


def _is(timing: dict[str, Any], model: str, batch: int, runtime: str, variant: str) -> bool:
    asked = {"model": model, "batch": batch, "runtime": runtime, "variant": variant}
    return asked == {name: timing.get(name, "") for name in asked}


def _ratio(ratio: dict[str, float | None]) -> str:
    if ratio.get("low") is None:
        return f"{ratio['value']:.2f}"
    return f"{ratio['value']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=Path, help="what hpcgen onnx bench --json printed")
    parser.add_argument("--device", choices=DEVICES, default="CPU", help="which of the report's devices it is from")
    parser.add_argument("--batch", type=int, default=1)
    asked = parser.parse_args()
    times = json.loads(asked.times.read_text("utf-8"))["runtimes"]
    if others := more(times):
        _print(MORE_HEAD, others)
    else:
        _print(HEAD, rows(times, asked.device, asked.batch))


def _print(head: tuple[str, ...], found: list[list[str]]) -> None:
    lines = [head, ["---"] * len(head), *found]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


if __name__ == "__main__":
    main()
