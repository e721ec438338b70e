"""What a choice by the model costs, against the best fixed choice."""

from __future__ import annotations

import msgspec
import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.measurements.records import Measurement, Software
from hpcgen.plugins.tuning.predict.ranking import evaluate, evaluate_left_out
from tests.unit.plugins.tuning.predict.rows import COMPILED, MACHINES, PLAIN, WORKLOADS, made, row

OTHER = Software(framework="tensorflow")


def times(one: Measurement, factor: float, software: Software) -> Measurement:
    return msgspec.structs.replace(one, value=one.value * factor, software=software)


def crossing() -> list[Measurement]:
    """The compiler pays for training and costs for inference, so that no default is right."""
    rows = []
    for each in made():
        rows.append(each)
        inference = msgspec.structs.replace(each.workload, name=f"{each.workload.name}-inference", kind="inference")
        rows.append(
            msgspec.structs.replace(each, workload=inference, value=each.value / (2 if each.software.compiler else 1))
        )
    return rows


def test_a_model_that_knows_when_a_compiler_pays_beats_every_default() -> None:
    found = evaluate_left_out(crossing(), "new machine")
    assert found.answered == found.questions == 80
    assert found.spearman == 1.0 and found.regret_percent == 0.0
    assert found.compared == 80 and found.default_regret_percent == pytest.approx(12.5, abs=20)
    assert found.better and "NO BETTER" not in str(found)


def test_a_default_that_is_always_right_cannot_be_beaten_and_that_is_said() -> None:
    found = evaluate_left_out(made(), "new workload")
    assert found.regret_percent == 0.0 and found.default == "pytorch + xla, 1 x ?"
    assert not found.better and str(found).endswith("THE MODEL IS NO BETTER THAN THIS DEFAULT")


def test_what_a_wrong_choice_costs() -> None:
    """The rows make the compiler look good, and on the machine that is held out it halves the speed."""
    rows = [each for each in made() if each.hardware.name != "box900"]
    held_out = [row(WORKLOADS[0], PLAIN, MACHINES[1]), times(row(WORKLOADS[0], PLAIN, MACHINES[1]), 0.5, COMPILED)]
    found = evaluate(rows, held_out)
    assert (found.questions, found.spearman, found.regret_percent) == (1, -1.0, 100.0)
    assert (found.default, found.default_regret_percent) == ("pytorch, 1 x ?", 0.0)


def test_ratios_are_a_choice_between_two() -> None:
    ratio = msgspec.structs.replace(
        row(WORKLOADS[0], COMPILED, MACHINES[0]), metric="speedup", value=0.8, baseline=PLAIN
    )
    found = evaluate(made(), [ratio])
    assert found.regret_percent == pytest.approx(25.0)


def test_what_the_model_refuses_is_counted_and_not_chosen() -> None:
    rows = [row(WORKLOADS[0], PLAIN, MACHINES[0]), times(row(WORKLOADS[0], PLAIN, MACHINES[0]), 9, OTHER)]
    found = evaluate(made(), rows)
    assert (found.questions, found.answered) == (1, 0)
    assert str(found) == "the model answers none of 1 questions: no row is near enough"


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        evaluate(made()[:2], made())
