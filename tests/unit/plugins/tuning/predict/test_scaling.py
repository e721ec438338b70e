"""Laws of scaling: found again, chosen by what they predict, honest beyond the rows; rows that do not fit are found."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.predict.prediction import Prediction, PredictionRefusal
from hpcgen.plugins.tuning.predict.scaling import (
    FAR,
    FLOOR,
    FORMS,
    TERMS,
    WORK,
    Law,
    ScalingPoint,
    fit_scaling,
    law_and_misfits,
    misfits,
    points_of,
    series_of,
)
from tests.unit.plugins.tuning.predict.rows import PAPERS

SERIES = {f"{key[1]} {key[2]} {key[3]}": rows for key, rows in series_of(PAPERS).items() if key[0] == "3dgan training"}
FACTORS = {"work": 1000.0, "floor": 1.5, "tree": 40.0, "ring": 300.0, "fixed steps": 0.6}
NODES = [1, 2, 4, 8, 16, 32, 64]


def times(form: str) -> list[tuple[int, float]]:
    return [(n, sum(FACTORS[term] * TERMS[term](n, 1.0) for term in FORMS[form])) for n in NODES]


@pytest.mark.parametrize("form", FORMS)
def test_a_law_is_found_again(form: str) -> None:
    model = fit_scaling(times(form))
    assert model.form == form
    assert model.seconds == pytest.approx({term: FACTORS[term] for term in FORMS[form]}, rel=1e-4)
    found = model.predict(128)
    assert isinstance(found, Prediction) and found.low < found.value < found.high


@pytest.mark.parametrize("name", [name for name, rows in SERIES.items() if any(row.nodes == 128 for row in rows)])
def test_128_nodes_are_predicted_from_fewer(name: str) -> None:
    """SuperMUC-NG and Stampede2 of the 3DGAN's paper: all layouts, from 64 nodes and fewer."""
    measured = next(row.value for row in SERIES[name] if row.nodes == 128)
    found = fit_scaling(points_of([row for row in SERIES[name] if row.nodes <= 64])).predict(128)
    assert isinstance(found, Prediction)
    assert found.low <= measured <= found.high
    assert found.value == pytest.approx(measured, rel=0.07)
    assert found.high / found.low < 1.2
    assert found.metric == "seconds_per_epoch" and found.rows_used[0].value > measured


def test_the_hosts_mpi_is_predicted_to_a_percent() -> None:
    rows = SERIES["supermuc-thin tensorflow, MPI host, charliecloud 4 x 12"]
    found = fit_scaling(points_of([row for row in rows if row.nodes <= 64])).predict(128)
    assert isinstance(found, Prediction) and found.value == pytest.approx(31.22, rel=0.01)


def test_the_row_that_the_paper_misprints_is_found_by_the_others() -> None:
    """3.94 s on 768 nodes; the reason in the data is not looked at."""
    odd = [
        (name, each.point.nodes) for name, rows in SERIES.items() for each in misfits(points_of(rows, doubtful=True))
    ]
    assert odd == [("supermuc-thin tensorflow, MPI host, charliecloud 4 x 12", 768)]
    law, found = law_and_misfits(SERIES[odd[0][0]])
    assert found[0].expected.low > 5 > 3.94 and law.points[-1].nodes == 512


def test_most_of_what_was_measured_later_lies_in_the_interval_of_what_was_measured_before() -> None:
    inside = []
    for rows in SERIES.values():
        points = points_of(rows)
        for count in range(3, len(points)):
            later = points[count]
            found = fit_scaling(points[:count]).expected(later.nodes)
            inside.append(found.low <= later.seconds <= found.high)
    assert len(inside) == 29 and sum(inside) >= 0.9 * len(inside)


def test_farther_away_is_less_certain_and_very_far_is_refused() -> None:
    rows = SERIES["supermuc-thin tensorflow, MPI host, charliecloud 4 x 12"]
    model, _ = law_and_misfits(rows)
    widths = [model.half_at(nodes) for nodes in (512, 700, 1024, 2048)]
    assert all(one < other for one, other in pairwise(widths))
    found = model.predict(512 * FAR + 1)
    assert (
        isinstance(found, PredictionRefusal)
        and found.reason == "2049 nodes are requested, but the rows cover 4 to 512 nodes"
    )
    assert found.measure_next is not None and found.measure_next.nodes == 1024
    assert str(found.measure_next) == "3dgan with tensorflow on supermuc-thin on 1024 nodes"


def test_fewer_than_three_numbers_of_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        fit_scaling([(1, 10.0), (2, 5.0), (2, 5.1)])


def test_a_larger_message_costs_what_it_is_larger() -> None:
    points = [
        ScalingPoint(nodes=n, megabytes=size, seconds=1000 / n + 40 * TERMS["tree"](n, size))
        for n in NODES
        for size in (1.0, 5.0)
    ]
    model = fit_scaling(points)
    assert model.form == "tree"
    assert model.expected(128, 10.0).value == pytest.approx(1000 / 128 + 10 * 40 * 7 / 128, rel=1e-4)


def test_speeds_are_points_too() -> None:
    rows: list[Measurement] = next(
        rows for key, rows in series_of(PAPERS).items() if key[0] == "convolution-kernel hpc"
    )
    assert [point.seconds * row.value for point, row in zip(points_of(rows), rows, strict=True)] == pytest.approx(
        [1] * 9
    )


def amdahl(parallel: float) -> Law:
    """A law where this share of the work is divided among nodes."""
    return Law(seconds={WORK: parallel, FLOOR: 1 - parallel})


def test_amdahl_with_all_of_it_parallel_takes_every_node() -> None:
    """MODAK's released model divides by 1 - F."""
    law = amdahl(1.0)
    assert law.efficiency(1000) == 1.0
    assert law.most_nodes(0.9, 1000) == law.most_nodes(1.0, 1000) == 1000


def test_the_number_of_nodes_is_rounded_down() -> None:
    """MODAK's released model rounds to the nearest number, and so to efficiencies below the one that is wanted."""
    law = amdahl(0.97)
    assert law.most_nodes(0.8, 1000) == 9  # (1 / 0.8 - 0.97) / 0.03 = 9.33
    law = amdahl(0.981)
    assert law.most_nodes(0.8, 1000) == 14  # 14.16
    assert law.most_nodes(0.798, 1000) == 14  # 14.32
    assert amdahl(0.96).most_nodes(0.81, 1000) == 6  # 6.86 would be rounded to 7, whose efficiency is 0.806
    assert amdahl(0.0).most_nodes(0.5, 1000) == 2
    assert amdahl(0.9).most_nodes(0.5, 1000) == 11  # exactly, and 10.99… in floats


@settings(max_examples=200)
@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(1, 5000))
def test_no_more_nodes_have_the_efficiency_and_these_do(parallel: float, wanted: float, limit: int) -> None:
    law = amdahl(parallel)
    most = law.most_nodes(wanted, limit)
    assert 1 <= most <= limit
    assert law.efficiency(most) >= wanted * (1 - 1e-8)
    assert most == limit or law.efficiency(most + 1) < wanted


@pytest.mark.parametrize(("parallel", "wanted", "limit"), [(0.5, 0, 4), (0.5, 1.5, 4)])
def test_what_is_no_share_is_refused(parallel: float, wanted: float, limit: int) -> None:
    with pytest.raises(InputError):
        amdahl(parallel).most_nodes(wanted, limit)


def test_efficiency_is_that_of_the_smallest_run() -> None:
    model = fit_scaling(times("tree")[2:])
    assert model.efficiency(4) == 1.0
    most = model.most_nodes(0.9, 10**6)
    assert model.efficiency(most) >= 0.9 > model.efficiency(most + 1)
    assert model.most_nodes(0.01, 10**6) == 64 * FAR
    with pytest.raises(InputError, match="fewer than 4 nodes"):
        model.most_nodes(0.9, 2)
