"""Latencies against the first of their model and batch."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.plugins.onnx.records import Timing
from hpcgen.plugins.onnx.timing import compare_timings, runtime_name


def timing(runtime: Any = "onnxruntime", *seconds: float, **more: Any) -> Timing:
    return Timing(**{"model": "m", "runtime": runtime, "batch": 2, "seconds": list(seconds), **more})


def test_half_the_time_is_twice_as_fast() -> None:
    first, second = compare_timings([timing("framework", 0.2, 0.22, 0.18), timing("onnxruntime", 0.1, 0.11, 0.09)])
    assert first.first and first.verdict == "the baseline of the comparison"
    assert second.ratio is not None and second.ratio.value == pytest.approx(2)
    # The noise is the same in each round, so that nothing of it is left in the ratio.
    assert second.ratio.low == pytest.approx(2) and second.verdict == "faster"
    assert second.per_second == pytest.approx(20)


def test_noise_is_no_difference() -> None:
    second = compare_timings([timing("framework", 0.1, 0.2, 0.1), timing("openvino", 0.2, 0.1, 0.12)])[1]
    assert second.verdict == "no difference that the noise does not cover"


def test_each_batch_and_model_has_a_first_of_its_own() -> None:
    found = compare_timings(
        [
            timing("framework", 1.0, 1.0),
            timing("framework", 4.0, 4.0, batch=8),
            timing("tvm", 8.0, 8.0, batch=8),
            timing("framework", 3.0, 3.0, model="n"),
        ]
    )
    assert [each.first for each in found] == [True, True, False, True]
    assert found[2].ratio is not None and found[2].ratio.value == pytest.approx(0.5) and found[2].verdict == "slower"


def test_without_the_framework_the_next_is_the_first() -> None:
    lost, first = compare_timings([timing("framework", failed="no module torch"), timing("onnxruntime", 1.0)])
    assert lost.verdict == "no module torch" and lost.seconds is None
    assert first.first


def test_one_that_failed_on_the_way_is_compared_over_its_own_rounds() -> None:
    found = compare_timings([timing("framework", 1.0, 1.0, 9.0), timing("tvm", 0.5, 0.5, failed="it ended")])[1]
    assert found.rounds == 2 and found.ratio is not None and found.ratio.value == pytest.approx(2)
    assert found.verdict == "after 2 rounds: it ended"


@pytest.mark.parametrize(
    ("runtime", "variant", "name"),
    [
        ("onnxruntime", "", "onnxruntime"),
        ("onnxruntime", "int8-dynamic", "onnxruntime int8-dynamic"),
        ("openvino", "openvino", "openvino"),
        ("openvino", "openvino-bf16", "openvino-bf16"),
        ("tvm", "tvm-tuned", "tvm-tuned"),
    ],
)
def test_names_for_people(runtime: Any, variant: Any, name: str) -> None:
    assert runtime_name(timing(runtime, variant=variant)) == name
