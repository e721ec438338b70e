"""Whether a model may choose: its choices on machines and for workloads that were left out, against fixed ones."""

from __future__ import annotations

import msgspec
import pytest

from hpcgen.plugins.tuning.measurements.records import Measurement, Software
from hpcgen.plugins.tuning.predict.fitting import coefficients, fit
from hpcgen.plugins.tuning.predict.held_out import held_out_tests
from hpcgen.plugins.tuning.predict.observations import observations
from hpcgen.plugins.tuning.predict.prediction import HeldOutTest
from tests.unit.plugins.tuning.predict.rows import MACHINES, PAPERS, PLAIN, WORKLOADS, made, row

XLA = "xla in pytorch"


def outcome_of(rows: list[Measurement], change: str, left_out: str, by: str) -> HeldOutTest:
    found = held_out_tests(observations(rows), coefficients)
    return next(each for each in found if (each.change, each.left_out, each.by) == (change, left_out, by))


def crossing() -> list[Measurement]:
    """The compiler pays for training and costs for inference, so that no fixed choice is right."""
    rows = []
    for each in made():
        rows.append(each)
        inference = msgspec.structs.replace(each.workload, name=f"{each.workload.name}-inference", kind="inference")
        slower = each.value / (2 if each.software.compiler else 1)
        rows.append(msgspec.structs.replace(each, workload=inference, value=slower))
    return rows


@pytest.mark.parametrize("by", ["linear", "pairs"])
@pytest.mark.parametrize("left_out", ["machine", "workload"])
def test_models_that_know_when_a_compiler_pays_may_choose(by: str, left_out: str) -> None:
    found = outcome_of(crossing(), XLA, left_out, by)
    # One question for each network on each machine: four nodes are not another one than one node.
    assert (found.questions, found.answered, found.cost_percent) == (40, 40, 0.0)
    assert found.better and found.fixed_cost_percent == pytest.approx(12.5)
    assert found.gain_low and found.gain_low > 0


def test_a_fixed_choice_that_is_always_right_cannot_be_beaten() -> None:
    for by in ("linear", "pairs"):
        found = outcome_of(made(), XLA, "machine", by)
        assert (found.fixed, found.fixed_cost_percent, found.cost_percent, found.better) == ("always", 0.0, 0.0, False)


def test_what_no_row_tells_is_left_as_it_is_and_costs_what_that_costs() -> None:
    """Glow pays on one machine alone: without its rows nobody can say so."""
    glow = msgspec.structs.replace(
        row(WORKLOADS[0], Software(framework="pytorch", compiler="glow"), MACHINES[0]),
        value=row(WORKLOADS[0], PLAIN, MACHINES[0]).value * 1.3,
    )
    found = outcome_of([*made(), glow], "glow in pytorch", "machine", "pairs")
    assert (found.groups, found.questions, found.answered, found.better) == (1, 1, 0, False)
    assert found.cost_percent == pytest.approx(30.0) and found.gain_low is None


def test_two_machines_are_too_few_however_good_the_choice_was() -> None:
    few = [each for each in crossing() if each.hardware.name in ("box500", "box900")]
    found = outcome_of(few, XLA, "machine", "pairs")
    assert (found.cost_percent, found.better, found.gain_low) == (0.0, False, None)
    assert found.fixed_cost_percent > 10


def test_on_the_papers_rows_the_linear_model_chooses_no_better_than_always_the_same() -> None:
    tests = fit(PAPERS).tests
    assert not any(each.better for each in tests if each.by == "linear")
    (won,) = [each for each in tests if each.better]
    assert (won.change, won.left_out, won.by) == ("onnxruntime for pytorch", "machine", "pairs")
    assert (won.cost_percent, won.fixed_cost_percent) == (pytest.approx(7.9, abs=0.1), pytest.approx(21.4, abs=0.1))
