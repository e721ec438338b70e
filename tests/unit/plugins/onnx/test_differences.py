"""How the programs of ``hpcgen onnx`` compare an original with a converted model: elements, and distributions."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from hpcgen.plugins.onnx.programs import common, compare, reference, ties
from hpcgen.plugins.onnx.records import OutputDifference

LIMITS = {"absolute": 1e-5, "relative": 1e-4, "share": 0.0}


def model(**more: Any) -> common.Model:
    return common.Model("m", {"from": "onnx", "inputs": {"x": {"shape": ["batch", 2]}}, **more})


def difference(original: Any, converted: Any, **more: Any) -> OutputDifference:
    """As the host reads it from JSON."""
    limits = dict(LIMITS, **more)
    found = compare.of_output("y", "random, batch 2", np.asarray(original), np.asarray(converted), limits)
    return msgspec.json.decode(json.dumps(found, allow_nan=False), type=OutputDifference)


def test_the_element_farthest_beyond_its_tolerance_is_said() -> None:
    """0.3 of 1000 is within, 0.001 of 0.1 is not, though it is the smaller difference."""
    found = difference([[1000.0, 0.1], [1.0, 2.0]], [[1000.05, 0.101], [1.0, 2.0]])
    assert found.at == [0, 1] and not found.passed
    assert (found.original, found.converted, found.beyond) == (0.1, 0.101, 0.25)
    assert found.largest_absolute == pytest.approx(0.05) and found.largest_relative == pytest.approx(0.01)


def test_a_share_of_elements_may_lie_beyond() -> None:
    assert difference([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0], share=0.25).passed
    assert not difference([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0], share=0.25).passed


@pytest.mark.parametrize(
    ("original", "converted", "passed"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], True),
        ([np.inf, -np.inf], [np.inf, -np.inf], True),
        ([np.nan, 1.0], [1.0, 1.0], False),
        ([1.0, 1.0], [np.nan, 1.0], False),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([1.0, 1.0], [np.inf, 1.0], False),
        ([0.0, 1.0], [1e-6, 1.0], True),
    ],
)
def test_what_is_no_number_is_equal_to_itself_alone(
    original: list[float], converted: list[float], passed: bool
) -> None:
    found = difference(original, converted)
    assert found.passed is passed
    assert found.at == ([0] if not passed else found.at)


def test_whole_numbers_and_words_are_compared_exactly() -> None:
    assert not difference([20000, 1], [20001, 1]).passed
    assert difference([20000, 1], [20000, 1]).passed
    words = difference(["cat", "dog"], ["cat", "fox"])
    assert words.wrong == "fox where the original gives dog" and words.at == [1] and not words.passed


def test_other_shapes_types_and_counts_are_said() -> None:
    assert difference([[1.0, 2.0]], [[1.0], [2.0], [3.0]]).wrong == "shape [3, 1] where the original gives [1, 2]"
    assert difference([[1.0, 2.0]], [[1.0, 2.0]]).shapes == ""
    assert "type" in difference([1.0], ["a"]).wrong
    found = compare.compare(model(outputs={"a": None, "b": None}), "x", [np.ones(2)] * 2, [np.ones(2)])
    assert [each["wrong"] for each in found] == ["1 outputs where the original gives 2"] * 2


def test_shapes_that_differ_by_axes_of_length_one_are_compared_and_said() -> None:
    found = difference([[1.0, 2.0]], [1.0, 2.0])
    assert found.passed and found.shapes == "shape [2] where the original gives [1, 2]"
    assert not difference([[1.0, 2.0]], [2.0, 1.0]).passed
    # All of them, as squeeze() leaves none of a batch of one.
    found = difference(3.0, [[3.5]])
    assert not found.passed and found.shapes and found.at == [] and found.converted == 3.5


def test_where_the_runtime_fails_the_other_data_are_compared_nevertheless() -> None:
    of, feeds = model(), {"x": np.ones((2, 2), "f4")}
    kept = reference.computed(
        of, ["y"], [("a", feeds), ("b", {"x": np.ones((3, 2), "f4")})], lambda given: [given["x"]], 1
    )

    def run(given: Any) -> Any:
        if len(given["x"]) == 2:
            raise RuntimeError("Non-zero status code")
        return [given["x"]]

    first, second = reference.differences(of, kept, run, 1)
    assert first["wrong"] == "the runtime fails: Non-zero status code" and not first["passed"] and second["passed"]
    with pytest.raises(MemoryError):
        reference.differences(of, kept, lambda given: (_ for _ in ()).throw(MemoryError()), 1)


def test_each_output_has_its_tolerance_a_variant_one_for_all() -> None:
    of = model(outputs={"a": {"absolute": 1.0}, "b": None}, tolerance={"absolute": 0.01})
    assert of.tolerance("a") == {"absolute": 1.0, "relative": 1e-4, "share": 0.0}
    ones, off = [np.ones(2)] * 2, [np.full(2, 1.5)] * 2
    assert [each["passed"] for each in compare.compare(of, "x", ones, off)] == [True, False]
    assert all(each["passed"] for each in compare.compare(of, "x", ones, off, {"absolute": 1.0}))


def test_a_label_may_be_another_at_a_tie_of_the_scores_and_nowhere_else() -> None:
    of = model(outputs={"label": None, "scores": None})
    labels, shares = np.array([0, 1, 1]), np.array([[0.5, 0.5], [0.2, 0.8], [0.3, 0.7]])
    scores = np.array([[1.0, 1.000001], [1.0, 2.0], [1.0, 3.0]])
    kept = reference.Reference(["label", "scores"], [("x", {}, [labels, shares], None)], "label", {"x": scores})
    tied, wrong = np.array([1, 1, 1]), np.array([0, 0, 1])
    found = reference.differences(of, kept, lambda feeds: [tied, shares], 1)
    assert [(each["passed"], each.get("tied", 0)) for each in found] == [(True, 1), (True, 0)]
    assert "1 of 3 values of label differ on x" in ties.told(found)[0]
    assert not reference.differences(of, kept, lambda feeds: [wrong, shares], 1)[0]["passed"]
    # What decides is the score, and not a share that both classes have.
    kept.scores = {"x": np.array([[1.0, 5.0], [1.0, 2.0], [1.0, 3.0]])}
    assert not reference.differences(of, kept, lambda feeds: [tied, shares], 1)[0]["passed"]
    # One score decides against 0.
    kept.scores = {"x": np.array([1e-7, 2.0, -3.0])}
    assert reference.differences(of, kept, lambda feeds: [tied, shares], 1)[0]["passed"]


def noise(shift: float, seed: int, runs: int = 100) -> Any:
    source = np.random.default_rng(seed)
    return compare.samples(model(), ["y"], lambda: [source.normal(shift, 1, (3, 50)).astype("f4")], runs)


@pytest.mark.parametrize("seed", range(5))
def test_distributions_are_equal_unless_they_are_moved(seed: int) -> None:
    same = compare.compare_distributions(model(), "x", noise(0, seed), noise(0, seed + 100), ["y"])[0]
    moved = compare.compare_distributions(model(), "x", noise(0, seed), noise(1.0, seed + 100), ["y"])[0]
    assert same["passed"] and 0 < same["distance"] <= same["limit"] < 0.4
    assert not moved["passed"] and moved["distance"] > moved["limit"]


def test_what_does_not_vary_is_compared_within_the_tolerance() -> None:
    fixed = np.full(100, 3.0)
    assert compare.distance(fixed, fixed + 1e-6, LIMITS) == 0
    assert compare.distance(fixed, fixed + 1e-2, LIMITS) == 1
    assert compare.distance(fixed, np.full(100, np.nan), LIMITS) == 1


def test_a_reference_is_the_same_after_it_is_read(tmp_path: Any) -> None:
    of = model(stochastic=True)
    feeds = {"x": np.ones((2, 2), "f4")}
    source = np.random.default_rng(3)
    kept = reference.computed(of, ["y"], [("random, batch 2", feeds)], lambda given: [source.random((2, 3))], 30)
    kept.save(tmp_path)
    read = reference.Reference.load(tmp_path)
    assert read.names == ["y"] and read.sets[0][0] == "random, batch 2"
    assert np.array_equal(read.sets[0][1]["x"], feeds["x"])
    assert np.array_equal(read.sets[0][3][0], kept.sets[0][3][0]) and read.sets[0][3][0].shape == (30, 7)
    [found] = reference.differences(of, read, lambda given: [np.random.default_rng(4).random((2, 3)) + 1], 30)
    assert not found["passed"] and found["distance"] == 1.0
