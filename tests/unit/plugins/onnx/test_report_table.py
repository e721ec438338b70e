"""The table of the report's figures beside ours."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[4] / "benchmarks" / "onnx" / "table.py"


def table() -> Any:
    spec = importlib.util.spec_from_file_location("onnx_table", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(times: list[dict[str, Any]], **how: Any) -> list[list[str]]:
    found: list[list[str]] = table().rows(times, **how)
    return found


def timed(runtime: str, seconds: float, **more: Any) -> dict[str, Any]:
    # Fields that have their defaults are not in the JSON of hpcgen onnx bench.
    timing = {"model": "squeezenet", "batch": 1, "runtime": runtime, **more}
    return {"timing": timing, "seconds": {"value": seconds}, "ratio": {"value": 1.5, "low": 1.25, "high": 1.75}}


def test_figures_stand_beside_those_of_the_same_model_and_device() -> None:
    times = [
        timed("framework", 0.03),
        timed("onnxruntime", 0.001, variant="ort-all"),
        timed("onnxruntime", 0.02),
        timed("onnxruntime", 0.001, batch=4),
        timed("openvino", 0.01, variant="openvino"),
    ]
    found = rows(times)
    own = ["30", "20", "1.50 (1.25 to 1.75)", "10", "1.50 (1.25 to 1.75)"]
    assert ["SqueezeNet", "CPU", "5.58", "1.29", "4.33", *own] in found
    assert [row[1] for row in found if any(row[5:])] == ["CPU"]
    assert len(found) == 9 and all(len(row) == 10 for row in found)


def test_without_figures_the_reports_stand_alone() -> None:
    assert not any(any(row[5:]) for row in rows([], device="V100"))


def test_models_that_the_report_has_not_stand_by_themselves() -> None:
    times = [
        timed("framework", 0.03, model="candle", batch=32, version="2.13.0"),
        timed("onnxruntime", 0.02, model="candle", batch=32),
        timed("framework", 0.03),
    ]
    own = ["CANDLE-like", "32", "PyTorch 2.13.0", "30", "20", "1.50 (1.25 to 1.75)", "", ""]
    assert table().more(times) == [own]
