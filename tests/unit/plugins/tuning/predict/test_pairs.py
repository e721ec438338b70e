"""Ratios by pairs of rows: what is a pair, and what pairs say of another release, machine or network."""

from __future__ import annotations

from math import exp, log

import msgspec
import pytest

from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload
from hpcgen.plugins.tuning.predict.pairs import PairCase, change_of, pairs, releases_between, shrunk_ratio

NET = Workload(name="net", kind="training", batch=32)
OTHER = Workload(name="other", kind="training", batch=32)
HERE, THERE = Hardware(name="here", cores=8), Hardware(name="there", cores=16)


def tf(version: str | None = "2.1", compiler: str = "", **more: object) -> Software:
    return msgspec.convert({"framework": "tensorflow", "version": version, "compiler": compiler, **more}, Software)


def row(software: Software, value: float, hardware: Hardware = HERE, workload: Workload = NET) -> Measurement:
    return Measurement(
        workload=workload, software=software, hardware=hardware, metric="samples_per_second", value=value
    )


def ratio(value: float, version: str, hardware: Hardware = HERE, workload: Workload = NET) -> list[Measurement]:
    return [row(tf(version), 100.0, hardware, workload), row(tf(version, "xla"), 100.0 * value, hardware, workload)]


def said(rows: list[Measurement], version: str = "2.1", hardware: Hardware = HERE, workload: Workload = NET) -> float:
    found = shrunk_ratio(pairs(rows), PairCase(workload, tf(version, "xla"), tf(version), hardware))
    assert found is not None
    return exp(found.ratio)


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (tf(compiler="xla"), tf(), "xla in tensorflow"),
        (tf(install="source"), tf(install="hub"), "tensorflow by source, not hub"),
        (tf(install="hub"), tf(install="source"), "tensorflow by source, not hub"),
        (Software(framework="onnxruntime"), Software(framework="pytorch"), "onnxruntime for pytorch"),
        (
            Software(framework="pytorch", compiler="onnxruntime"),
            Software(framework="pytorch"),
            "onnxruntime for pytorch",
        ),
    ],
)
def test_one_choice_has_one_name_whichever_way_rows_tell_it(one: Software, other: Software, name: str) -> None:
    found = change_of(one, other)
    assert found is not None and found.name == name
    assert found.turned == (one.install == "hub")


@pytest.mark.parametrize(
    ("one", "other"),
    [(tf(), tf()), (tf(compiler="xla"), tf(compiler="ngraph")), (tf(), Software(framework="pytorch"))],
)
def test_two_that_do_not_differ_in_one_choice_are_no_pair(one: Software, other: Software) -> None:
    assert change_of(one, other) is None


def test_rows_of_other_releases_batches_and_machines_are_no_pairs() -> None:
    big = msgspec.structs.replace(NET, batch=64)
    plain = row(tf(), 100.0)
    for other in (row(tf("2.2", "xla"), 150.0), row(tf(compiler="xla"), 150.0, THERE)):
        assert pairs([plain, other]) == []
    assert pairs([plain, row(tf(compiler="xla"), 150.0, workload=big)]) == []
    (found,) = pairs([plain, row(tf(compiler="xla"), 150.0)])
    assert found.ratio == pytest.approx(log(1.5)) and found.row.metric == "speedup"


def test_a_day_of_a_pair_is_that_of_its_older_row() -> None:
    one, other = ratio(1.5, "2.1")
    replace = msgspec.structs.replace
    (found,) = pairs([replace(one, measured="2024-05-01"), replace(other, measured="2026-05-01")])
    assert found.row.measured == "2024-05-01"
    (found,) = pairs([one, replace(other, measured="2026-05-01")])
    assert found.row.measured is None


def test_one_ratio_says_less_than_the_same_on_many_machines() -> None:
    many = [each for number in range(9) for each in ratio(2.0, "2.1", Hardware(name=f"m{number}"))]
    assert 1 < said(ratio(2.0, "2.1", THERE)) < said(many) < 2


def test_a_ratio_counts_less_the_farther_its_release_is() -> None:
    found = [said(ratio(2.0, version)) for version in ("2.1", "2.2", "2.9")]
    assert 2 > found[0] > found[1] > found[2] > 1
    unknown = [msgspec.structs.replace(each, software=_nameless(each)) for each in ratio(2.0, "2.1")]
    assert 1 < said(unknown) < found[2]


def _nameless(one: Measurement) -> Software:
    return msgspec.structs.replace(one.software, version=None)


def test_another_major_release_says_nothing() -> None:
    assert shrunk_ratio(pairs(ratio(2.0, "1.15")), PairCase(NET, tf(compiler="xla"), tf(), HERE)) is None


def test_rows_of_the_network_count_more_than_those_of_others() -> None:
    rows = [*ratio(0.5, "2.1", workload=OTHER), *ratio(2.0, "2.1", THERE)]
    assert said(rows) > 1 > said(rows, workload=OTHER)


def test_the_nearest_release_is_that_of_the_rows_most_like_the_case() -> None:
    rows = [*ratio(0.5, "2.1", workload=OTHER), *ratio(2.0, "2.7")]
    found = shrunk_ratio(pairs(rows), PairCase(NET, tf(compiler="xla"), tf(), HERE))
    assert found is not None and (found.releases, found.near) == (6, False)
    assert [pair.row.workload.name for pair in found.used] == ["net", "other"]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("2.1", "2.1.4", 0), ("2.1.4", "2.15", 14), ("1.14", "2.1", None), (None, "2.1", None), (None, None, 0)],
)
def test_releases_are_counted_within_a_major_one(one: str | None, other: str | None, apart: int | None) -> None:
    assert releases_between(one, other) == apart
