"""Every number of a decision has a source, and none is called measured that lacks release, batch or date."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import loads
from hpcgen.plugins.tuning.measurements.cited import cited, lacks
from hpcgen.plugins.tuning.measurements.collection import load_measurements
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload
from hpcgen.plugins.tuning.optimise.candidates import candidates
from hpcgen.plugins.tuning.optimise.decide import Optimised, Planner, optimise
from hpcgen.plugins.tuning.optimise.evidence import rows_of_workload, software_of
from hpcgen.plugins.tuning.optimise.judge import Judged, best_of, judged, planned
from hpcgen.plugins.tuning.optimise.layouts import layouts
from hpcgen.plugins.tuning.optimise.modelled import Modelled
from hpcgen.plugins.tuning.optimise.records import Decision, Estimate
from hpcgen.plugins.tuning.optimise.report import report
from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes
from hpcgen.plugins.tuning.requests.reading import read_request, request_from
from hpcgen.plugins.tuning.requests.records import OptimiseRequest
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "examples" / "requests").glob("*.yaml"))


@cache
def decided(name: str) -> Optimised:
    catalog = Catalog()
    read = read_request(ROOT / "examples" / "requests" / name)
    site, said = target_of(read.request, catalog, "2026-11-20")
    site, more = with_wishes(site, read.request)
    known = load_measurements(catalog.folders)
    return optimise(catalog, read.request, site, known, [*read.findings, *said, *more], name)


def estimates(decision: Decision) -> Iterator[Estimate]:
    yield from (each.estimate for each in decision.alternatives)
    yield from (each.estimate for each in decision.layouts)


def check(estimate: Estimate) -> None:
    """A number has rows with their sources; a measured one those that say all of themselves."""
    if estimate.value is None:
        assert estimate.basis == "none"
        return
    assert estimate.rows and all(row.hardware for row in estimate.rows)
    if estimate.basis == "measured":
        assert not estimate.why
        for row in estimate.rows:
            assert row.release and row.date and not row.lacks, row
    else:
        assert estimate.basis == "predicted" and estimate.why


def test_there_are_ten_requests_of_every_kind_of_network_and_program() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("name", [each.name for each in EXAMPLES])
def test_every_number_of_an_example_has_its_source_in_the_report_and_in_json(name: str) -> None:
    result = decided(name)
    text = report(result.decision)
    again = msgspec.json.decode(msgspec.json.encode(result.decision), type=Decision)
    for estimate in estimates(again):
        check(estimate)
        assert all(row.number in text and row.about in text for row in estimate.rows)
        assert all(row.source and row.date for row in estimate.rows)


@pytest.mark.parametrize("name", [each.name for each in EXAMPLES])
def test_the_headline_is_of_the_layout_that_is_taken(name: str) -> None:
    result = decided(name)
    (taken,) = [each.estimate for each in result.decision.alternatives if each.result == "chosen"]
    job = result.plan.job
    planned = f"{job.nodes} x {job.ranks_per_node} x "
    assert taken.layout.startswith(planned) or taken.value is None or f"nothing was measured in {planned}" in taken.why
    assert all(each.estimate == taken for each in result.decision.layouts if each.chosen)
    assert taken.basis != "measured" or taken.layout.startswith(planned)


# rows of any kind: on the machine of the request or elsewhere, with and without what they should say

MNIST = """
kind: ai_training
framework: tensorflow
version: 2.1
site: hlrs-testbed
workload: {name: mnist-cnn}
hardware: {accelerator: none}
"""
HERE = Hardware(name="hlrs-modak-cpu", site="hlrs-testbed", partition="gpu", cpu="broadwell", cores=10)
SOFTWARE = st.builds(
    Software,
    framework=st.just("tensorflow"),
    version=st.sampled_from([None, "1.15", "2.1", "2.1.4", "2.3"]),
    install=st.sampled_from(["", "pip", "source"]),
    compiler=st.sampled_from(["", "xla"]),
)


@st.composite
def rows(draw: st.DrawFn) -> Measurement:
    speedup = draw(st.booleans())
    software = draw(SOFTWARE)
    fields: dict[str, Any] = {
        "workload": Workload(name="mnist-cnn", kind="training", batch=draw(st.sampled_from([None, 64, 128]))),
        "software": software,
        "hardware": draw(st.sampled_from([HERE, Hardware(name="other", cores=8)])),
        "metric": "speedup" if speedup else draw(st.sampled_from(["samples_per_second", "seconds_per_epoch"])),
        "value": draw(st.floats(0.1, 1000)),
        "nodes": draw(st.sampled_from([1, 4, 16])),
        "threads_per_rank": draw(st.sampled_from([None, 10])),
        "measured": draw(st.sampled_from([None, "2026-11-01"])),
        "baseline": msgspec.structs.replace(software, compiler="", version=draw(SOFTWARE).version) if speedup else None,
    }
    return Measurement(**fields)


@cache
def prepared() -> tuple[OptimiseRequest, list[Judged]]:
    """The request with its candidates planned: rows change neither."""
    catalog, request = Catalog(), request_from(loads(MNIST, "request.yaml")).request
    planner = Planner(catalog, catalog.site("hlrs-testbed"), request)
    return request, planned(candidates(catalog, request, planner.site, ["gpu"]), planner.settled)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(rows(), max_size=8))
def test_no_number_is_measured_whose_rows_lack_something(drawn: list[Measurement]) -> None:
    request, ways = prepared()
    known = Measurements(drawn)
    of_workload = rows_of_workload(known, request)
    found = judged(ways, of_workload, Modelled(known, request))
    best = best_of(found)
    assert best is not None and best.plan is not None
    options = layouts(of_workload, software_of(best.candidate, best.plan), best.plan, request)
    for estimate in [*(each.estimate for each in found), *(each.estimate for each in options)]:
        check(estimate)
        if estimate.basis == "measured":
            assert all(row.release.startswith("2.1") and " against " not in row.release for row in estimate.rows)
            assert estimate.metric == "speedup" or all(row in map(cited, drawn) for row in estimate.rows)
    # What is taken in the default's place was measured as such: here, whole, and faster.
    if best.candidate.suited.compiler:
        whole = [row for row in drawn if row.hardware is HERE and not lacks(row)]
        assert any(row.software.compiler == "xla" for row in whole)
