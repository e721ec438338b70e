"""At which lengths of its axes a model is tried, and what follows from a difference at some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgen.plugins.onnx.convert import tried_lines, with_verdicts
from hpcgen.plugins.onnx.programs import common, reference, trials
from hpcgen.plugins.onnx.records import OutputDifference, TriedLengths

JOB: dict[str, Any] = {"ensemble": {"seed": 7}}


def model(shape: list[Any], axes: dict[str, int], **more: Any) -> common.Model:
    return common.Model("m", {"from": "onnx", "inputs": {"x": {"shape": shape}}, "axes": axes, **more})


def tried(of: common.Model, run: Any = lambda feeds: feeds["x"], begin: Any = None) -> trials.Trials:
    def outputs(feeds: Any) -> Any:
        return [np.asarray(run(feeds))], None

    kept = reference.Reference(["y"])
    for axes in begin or [dict(of.axes)]:
        feeds = {"x": np.zeros([axes.get(each, each) for each in of.inputs[0].declared], "f4")}
        kept.sets.append((f"given {axes}", feeds, *outputs(feeds)))
    made = trials.Trials(of, JOB, kept, outputs)
    made.all()
    return made


def lengths(of: common.Model, made: trials.Trials) -> list[tuple[int, ...]]:
    return [tuple(of.lengths_in(each[1]).values()) for each in made.kept.sets]


def test_every_axis_is_tried_at_one_shorter_and_longer_and_all_together() -> None:
    of = model(["batch", "time", 6], {"time": 10})
    assert lengths(of, tried(of)) == [(2, 10), (1, 10), (3, 10), (2, 1), (2, 5), (2, 15), (1, 5), (3, 15)]


def test_lengths_that_the_user_gave_are_not_tried_again() -> None:
    of = model(["batch", 6], {})
    assert lengths(of, tried(of, begin=[{"batch": 1}, {"batch": 4}])) == [(1,), (4,)]


def test_lengths_at_which_the_original_gives_no_number_are_no_trial() -> None:
    """As attention whose random mask covers all that there is."""

    def run(feeds: Any) -> Any:
        return np.full(feeds["x"].shape, np.nan if len(feeds["x"]) == 1 else 1.0, "f4")

    of = model(["time", 6], {"time": 10})
    made = tried(of, run)
    assert lengths(of, made) == [(10,), (5,), (15,)]
    assert [each["refused"] for each in made.refused] == [
        "its output there is not a number, as with a mask that covers everything"
    ]


def test_where_the_original_takes_multiples_alone_these_are_tried() -> None:
    """As a network that halves an image five times."""

    def run(feeds: Any) -> Any:
        if feeds["x"].shape[0] % 32:
            raise ValueError("Sizes of tensors must match")
        return feeds["x"]

    of = model(["height", 2], {"height": 224})
    made = tried(of, run)
    assert lengths(of, made) == [(224,), (192,), (256,)]
    assert {each["axes"]["height"] for each in made.refused} == {1, 112, 336}
    assert made.refused[0]["refused"] == "ValueError: Sizes of tensors must match"


def test_an_original_for_one_length_alone_is_refused_with_its_own_reason() -> None:
    def run(feeds: Any) -> Any:
        if feeds["x"].shape[1] != 5:
            raise ValueError("mat1 and mat2 shapes cannot be multiplied")
        return feeds["x"]

    with pytest.raises(common.Cannot, match="no other length of the axis time than 5: ValueError: mat1 and") as caught:
        tried(model(["batch", "time"], {"time": 5}), run)
    assert "write 5 in place of time" in caught.value.remedy


def test_axes_that_only_change_together_are_tried_together() -> None:
    """As a mask over what is kept and what is new."""

    def run(feeds: Any) -> Any:
        if feeds["x"].shape[0] + 3 != feeds["x"].shape[1]:
            raise ValueError("no")
        return feeds["x"]

    of = model(["new", "all"], {"new": 4, "all": 7})
    assert lengths(of, tried(of, run)) == [(7, 4), (6, 3), (8, 5)]


def test_shapes_are_varied_by_the_values_of_the_users_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    np.save(tmp_path / "given" / "x.npy", np.array([[5, 6], [7, 8]], "f4"))
    of = model(["batch", 2], {}, data=["x.npy"])
    made = tried(of)
    assert [each[0] for each in made.kept.sets[1:]] == ["x.npy, batch 1", "x.npy, batch 3"]
    assert made.kept.sets[2][1]["x"].tolist() == [[5, 6], [7, 8], [5, 6]]


def test_what_fills_the_memory_is_not_tried() -> None:
    of = model(["batch", 2], {})
    made = tried(of)
    assert not made.attempt({"batch": 1 << 40}) and "too many to try" in made.refused[-1]["refused"]


@pytest.mark.parametrize(
    ("wrong", "axes"),
    [
        ([], set()),
        ([(2, 15)], {"time"}),
        ([(2, 5), (1, 5), (3, 15)], {"time"}),
        ([(1, 10), (2, 5)], {"batch", "time"}),
        ([(3, 15)], {"batch", "time"}),
        ([(2, 10), (2, 15)], set()),
    ],
)
def test_the_axes_that_explain_a_difference_are_found(wrong: list[tuple[int, int]], axes: set[str]) -> None:
    """None do where the example's own lengths differ: then the model is simply wrong."""
    of = model(["batch", "time", 6], {"time": 10})
    kept = tried(of).kept
    found = [{"data": each[0], "passed": each[1]["x"].shape[:2] not in wrong} for each in kept.sets]
    assert trials.unproven(of, found, kept) == axes
    of.fix({"time"}, "it is a loop")
    assert of.reasons == ["time stays 10: it is a loop"] and of.inputs[0].shape == ["batch", 10, 6]
    assert [each[1]["x"].shape[:2] for each in kept.within(of).sets] == [(2, 10), (1, 10), (3, 10)]


def test_the_table_has_verdicts_and_only_what_was_compared() -> None:
    asked = [
        TriedLengths("a", {"batch": 2, "time": 5}),
        TriedLengths("b", {"batch": 2, "time": 9}),
        TriedLengths("c", {"time": 7}),
    ]
    asked.append(TriedLengths("d", {"batch": 2, "time": 1}, refused="too short"))
    differences = [
        OutputDifference(output="y", data="a", elements=4, largest_absolute=1e-7),
        OutputDifference(output="z", data="a", elements=4, largest_absolute=3e-7),
        OutputDifference(output="y", data="b", elements=4, largest_absolute="nan", passed=False),
    ]
    found = with_verdicts(asked, differences)
    assert [(each.data, each.largest_absolute, each.passed) for each in found] == [
        ("a", 3e-7, True),
        ("b", "nan", False),
        ("d", 0.0, True),
    ]
    assert tried_lines(found) == ["compared at batch 2; time 5, 9 (the original itself does not run at time 1)"]
