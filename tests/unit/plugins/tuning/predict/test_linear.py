"""The linear model finds a formula again, says how far off it is, and refuses what no row covers."""

from __future__ import annotations

from math import log

import msgspec
import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.measurements.cited import cited
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload
from hpcgen.plugins.tuning.predict.fitting import coefficients, fit
from hpcgen.plugins.tuning.predict.left_out import folds, spreads
from hpcgen.plugins.tuning.predict.linear import LinearModel
from hpcgen.plugins.tuning.predict.observations import Observation, observations
from hpcgen.plugins.tuning.predict.prediction import Prediction, PredictionRefusal
from hpcgen.plugins.tuning.predict.terms import structure
from tests.unit.plugins.tuning.predict.rows import COMPILED, MACHINES, PAPERS, PLAIN, WORKLOADS, made, row, speed


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return fit(made())


def changed(one: Measurement, **fields: object) -> Measurement:
    return msgspec.structs.replace(one, **fields)


def said(found: Prediction | PredictionRefusal) -> Prediction:
    assert isinstance(found, Prediction), found
    return found


def refused(found: Prediction | PredictionRefusal) -> PredictionRefusal:
    assert isinstance(found, PredictionRefusal), found
    return found


def test_the_formula_is_found_again(model: LinearModel) -> None:
    ranks = next(each for each in model.columns if each.term == "ranks")
    assert ranks.coefficient == pytest.approx(0.95, abs=0.01) and ranks.low < 0.95 < ranks.high
    gains = sum(each.coefficient for each in model.columns if each.term.startswith("compiler"))
    assert gains == pytest.approx(log(1.25), abs=0.01)


def test_known_and_new_workloads_and_machines_are_predicted_within_the_interval(model: LinearModel) -> None:
    new_net = Workload(
        name="new", kind="training", parameters=12 * 10**6, gflop_per_sample=12, batch=32, shape=[64, 64, 3]
    )
    new_box = Hardware(name="new", cores=30, peak_gflops=1200, bandwidth_gbs=100)
    widths = []
    for workload, hardware, situation in (
        (WORKLOADS[2], MACHINES[1], "known"),
        (WORKLOADS[2], new_box, "new machine"),
        (new_net, MACHINES[1], "new workload"),
        (new_net, new_box, "new machine and workload"),
    ):
        found = said(model.predict(workload, COMPILED, hardware, 2))
        assert found.low < speed(workload, COMPILED, hardware, 2) < found.high
        assert (found.situation, found.metric, found.unit) == (situation, "samples_per_second", "samples/s")
        widths.append(found.high / found.low)
    assert widths[0] < min(widths[1:])


def test_the_nearest_rows_are_named(model: LinearModel) -> None:
    rows = said(model.predict(WORKLOADS[0], COMPILED, MACHINES[0], 4)).rows_used
    assert rows[0].label == "net2, pytorch + xla, box500, 4 x 1 x ?"
    assert rows[0].value == pytest.approx(speed(WORKLOADS[0], COMPILED, MACHINES[0], 4))


def test_two_configurations_are_compared_without_the_error_of_either(model: LinearModel) -> None:
    found = said(model.compare(WORKLOADS[0], COMPILED, PLAIN, MACHINES[0], 1, 1, None))
    assert found.low < 1.25 < found.high and found.metric == "speedup"
    value = said(model.predict(WORKLOADS[0], COMPILED, MACHINES[0]))
    assert found.high / found.low < value.high / value.low


def test_a_ratio_of_two_rows_says_as_much_as_its_rows() -> None:
    """Without one row of the compiler, a ratio alone tells its gain."""
    plain = [each for each in made() if not each.software.compiler]
    ratio = changed(row(WORKLOADS[0], COMPILED, MACHINES[0]), metric="speedup", value=1.25, baseline=PLAIN)
    assert "compiler" in refused(fit(plain).predict(WORKLOADS[0], COMPILED, MACHINES[0])).reason
    more = [changed(ratio, workload=each) for each in WORKLOADS]
    found = said(fit([*plain, *more]).predict(WORKLOADS[1], COMPILED, MACHINES[1]))
    assert found.value == pytest.approx(speed(WORKLOADS[1], COMPILED, MACHINES[1], 1), rel=0.05)


def test_epochs_and_batches_are_speeds() -> None:
    one = row(WORKLOADS[0], PLAIN, MACHINES[0])
    sized = msgspec.structs.replace(WORKLOADS[0], samples=1000)
    epoch = changed(one, workload=sized, metric="seconds_per_epoch", value=1000 / one.value)
    batch = changed(one, metric="seconds_per_batch", value=32 * 2 / one.value, ranks_per_node=2)
    unknown = changed(one, metric="seconds_per_epoch", value=7)
    found = observations([one, epoch, batch, unknown, changed(one, metric="memory_gb")])
    assert [each.speed for each in found[:3]] == pytest.approx([log(one.value)] * 3)
    assert [each.level for each in found] == ["samples_per_second"] * 3 + ["net2 training seconds_per_epoch"]
    assert found[3].speed == pytest.approx(-log(7))


def test_epochs_of_unknown_length_are_predicted_in_their_own_unit() -> None:
    """An intercept of the workload alone: the level of other workloads does not matter."""
    rows = [
        changed(each, metric="seconds_per_epoch", value=10**6 / each.value) if each.workload.name == "net4" else each
        for each in made()
    ]
    found = said(fit(rows).predict(WORKLOADS[1], COMPILED, MACHINES[2], 2))
    assert found.metric == "seconds_per_epoch"
    assert found.value == pytest.approx(10**6 / speed(WORKLOADS[1], COMPILED, MACHINES[2], 2), rel=0.05)


@pytest.mark.parametrize(
    ("workload", "software", "hardware", "nodes", "why"),
    [
        ({}, {"framework": "jax"}, {}, 1, "no row has framework jax; there is pytorch"),
        ({"precision": "bf16"}, {}, {}, 1, "precision bf16"),
        ({"kind": "inference"}, {}, {}, 1, "kind inference"),
        ({}, {"compiler": "tvm"}, {}, 1, "compiler tvm"),
        ({}, {}, {"gpu": "V100"}, 1, "accelerator gpu"),
        ({"batch": 65}, {}, {}, 1, "batch is 65 (samples of one rank in one step), and the rows have 32 only"),
        ({}, {}, {}, 9, "ranks is 9 (of all nodes), and the rows have 1 to 4"),
        ({"name": "other", "parameters": None}, {}, {}, 1, "parameters of other is not known"),
        ({}, {}, {"name": "other", "peak_gflops": None}, 1, "peak of other is not known"),
        ({}, {"mpi": "host"}, {}, 1, "no row has a mpi"),
    ],
)
def test_what_no_row_covers_is_refused(
    model: LinearModel,
    workload: dict[str, object],
    software: dict[str, object],
    hardware: dict[str, object],
    nodes: int,
    why: str,
) -> None:
    case = (
        msgspec.structs.replace(WORKLOADS[0], **workload),
        msgspec.structs.replace(PLAIN, **software),
        msgspec.structs.replace(MACHINES[0], **hardware),
    )
    found = refused(model.predict(*case, nodes))
    assert why in found.reason
    assert found.measure_next is not None
    assert found.measure_next.machine == case[2].name and found.measure_next.framework == case[1].framework
    assert found.measure_next.nodes == min(nodes, 8)


def test_twice_as_far_as_the_rows_reach_is_still_told(model: LinearModel) -> None:
    said(model.predict(msgspec.structs.replace(WORKLOADS[0], batch=64), PLAIN, MACHINES[0], 8))


def test_too_few_machines_say_nothing_of_new_ones() -> None:
    found = fit([each for each in made() if each.hardware.name in ("box500", "box900")])
    new = msgspec.structs.replace(MACHINES[0], name="new")
    assert "too few machines" in refused(found.predict(WORKLOADS[0], PLAIN, new)).reason
    said(found.predict(WORKLOADS[0], PLAIN, MACHINES[0]))


def test_a_number_that_few_machines_state_is_no_term() -> None:
    rows = [
        changed(each, hardware=msgspec.structs.replace(each.hardware, peak_gflops=None))
        if each.hardware.name != "box500"
        else each
        for each in made()
    ]
    assert "peak" not in {each.term for each in fit(rows).columns}


def test_doubtful_rows_are_left_out() -> None:
    wrong = changed(made()[0], value=1e9, doubtful="a misprint")
    assert fit([*made(), wrong]).columns == fit(made()).columns
    assert fit([*made(), wrong]).left_out == 1
    assert fit([*made(), wrong], doubtful=True).columns != fit(made()).columns


def test_rows_in_any_order_give_nearly_the_same(model: LinearModel) -> None:
    other = said(fit(made()[::-1]).predict(WORKLOADS[0], PLAIN, MACHINES[0]))
    assert said(model.predict(WORKLOADS[0], PLAIN, MACHINES[0])).value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize("situation", ["new machine", "new workload", "new machine and workload"])
def test_whole_machines_and_workloads_are_left_out(situation: str) -> None:
    rows = observations(made())
    left = list(folds(rows, situation))  # type: ignore[arg-type]
    assert sorted(index for fold in left for index in fold.out) == list(range(len(rows)))
    for fold in left:
        out, kept = ([rows[index].case for index in part] for part in fold)
        if "machine" in situation:
            assert not {each.hardware.name for each in out} & {each.hardware.name for each in kept}
        if "workload" in situation:
            assert not {each.workload.name for each in out} & {each.workload.name for each in kept}


def test_intervals_are_of_rows_left_out_not_of_the_fit() -> None:
    """A machine that is another by a factor of 3 for no stated reason widens the interval of new machines alone."""
    odd = [changed(each, value=3 * each.value) if each.hardware.name == "box900" else each for each in made()]

    def half(rows: list[Measurement], situation: str) -> float:
        return next(each.half or 0 for each in fit(rows).spreads if (each.situation, each.of) == (situation, "value"))

    assert half(odd, "new machine") > log(3) > 10 * half(odd, "known")
    assert half(made(), "new machine") < half(odd, "new machine") / 2


def test_a_fit_never_sees_what_it_is_judged_by() -> None:
    rows = observations(made())
    seen: list[set[int]] = []

    def spy(kept: object) -> None:
        assert isinstance(kept, list)
        seen.append({id(each) for each in kept})

    spreads(rows, spy)
    everything = {id(each) for each in rows}
    assert all(part < everything for part in seen)


@pytest.mark.parametrize("rows", [[], made()[:2], [made()[0]] * 5])
def test_too_few_rows_are_refused(rows: list[Measurement]) -> None:
    with pytest.raises(InputError, match="differ in nothing"):
        fit(rows)


def test_structure_is_by_operations_where_they_are_known() -> None:
    dense = Workload(name="a", kind="training", parameters=10**6, gflop_per_sample=0.006, shape=[28, 28])
    assert structure(dense) == "dense"
    assert structure(msgspec.structs.replace(dense, gflop_per_sample=0.06)) == "convolution"
    assert structure(Workload(name="a", kind="inference", shape=[784])) == "dense"
    assert structure(Workload(name="a", kind="inference", shape=[25, 25, 25])) == "convolution"
    assert structure(Workload(name="a", kind="hpc", shape=[25, 25, 25])) is None


def test_the_papers_ratios_come_out_in_their_direction() -> None:
    """XLA costs on the CPU network and pays on the GPU network; nGraph pays."""
    found = fit(PAPERS)
    for one in PAPERS:
        # Of variables alone where both have the same compiler.
        if one.baseline is None or one.software.compiler in ("", one.baseline.compiler):
            continue
        ratio = said(found.compare(one.workload, one.software, one.baseline, one.hardware, 1, 1, None))
        assert ratio.value == pytest.approx(one.value, rel=0.1)


def test_observations_keep_their_row() -> None:
    one: Observation = observations(PAPERS)[0]
    assert cited(one.row).source.startswith("paper: ") and coefficients([one]) is None
    assert isinstance(Software(framework="x"), Software)


def test_a_ratio_of_variables_alone_is_no_observation() -> None:
    one = changed(row(WORKLOADS[0], COMPILED, MACHINES[0]), metric="speedup", value=1.3, baseline=PLAIN)
    flags = changed(one, software=msgspec.structs.replace(PLAIN, environment={"CFLAGS": "-O3"}))
    assert [each.row for each in observations([one, flags])] == [one]
