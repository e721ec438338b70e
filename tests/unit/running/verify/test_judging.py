"""Figures of tests held against the profile's: what is good, too slow or unknown, and which cause is named."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.nodes import Fabric
from hpcgen.core.model.performance import Measure, PerformanceFact
from hpcgen.core.model.record import BuildRecord, Figure, JudgedFigure
from hpcgen.core.model.record import TestResult as Result
from hpcgen.core.model.record import TestRun as Run
from hpcgen.machine.doctor.rules import Report
from hpcgen.planning.planner import make_plan
from hpcgen.running.verify.conditions import NodeCondition, faults_on_nodes, other_work, read_conditions, watched
from hpcgen.running.verify.judging import Evidence, better, judged_results
from hpcgen.running.verify.judging import judge as judge_at
from hpcgen.running.verify.measured_facts import measured_facts, measured_profile
from hpcgen.running.verify.over_nodes import judged_start
from hpcgen.running.verify.recorded_figures import with_figures
from hpcgen.running.verify.starts import StartResult
from tests.conftest import Command

replace = msgspec.structs.replace
CATALOG = default_catalog()
LATENCY = PerformanceFact(value=1.8, unit="us", at=8, nodes=2, ranks_per_node=1, tolerance=0.2)
BANDWIDTH = PerformanceFact(value=24, unit="GB/s", nodes=2, ranks_per_node=1)
WITHIN = PerformanceFact(value=30000, unit="MB/s", nodes=1, ranks_per_node=2)
NCCL = PerformanceFact(value=489, unit="GB/s", nodes=2, ranks_per_node=8)


def plan(fabric: str = "infiniband", **facts: PerformanceFact) -> Any:
    """A plan for the thin nodes of supermuc with these figures, over another fabric."""
    found = make_plan(CATALOG, CATALOG.site("supermuc"), CATALOG.stack("net-test"))
    partition = replace(found.site.partitions["thin"], performance=facts)
    kind: Any = fabric
    site = replace(found.site, partitions={"thin": partition}, fabric=Fabric(kind=kind), sources={})
    return replace(found, site=site, partition="thin")


def judge(found: Any, *words: Any) -> JudgedFigure | None:
    return judge_at(found.site, found.partition, *words)


def latency(*values: float) -> list[Figure]:
    return [Figure(name="latency", value=value, unit="us", at=2**row) for row, value in enumerate(values)]


def rates(*values: float, unit: str = "MB/s") -> list[Figure]:
    return [Figure(name="bandwidth", value=value, unit=unit, at=2**row) for row, value in enumerate(values)]


def told(found: Any, measure: Measure, figures: list[Figure], seen: Evidence | None = None, nodes: int = 2) -> Result:
    """The one result of a test with these figures, judged."""
    ranks = 8 if measure == "nccl_bus_bandwidth" else 2 // nodes
    judgement = judge(found, measure, figures, nodes, ranks)
    result = Result(group="osu", name=measure, result="passed", reason="as measured", judgement=judgement)
    return judged_results(found, [result], seen or Evidence())[0]


def test_a_figure_counts_at_the_size_of_the_profile() -> None:
    found = plan(latency=LATENCY)
    good = told(found, "latency", latency(9, 9, 9, 2.1))
    assert good.result == "passed"
    assert good.reason == "as measured; 2.1 us at 8 bytes, expected 1.8 (at most 2.16)"
    slow = told(found, "latency", latency(1, 1, 1, 2.2))
    assert slow.result == "failed" and slow.judgement is not None
    assert (slow.judgement.measured, slow.judgement.expected, slow.judgement.limit) == (2.2, 1.8, pytest.approx(2.16))
    assert "latency is 2.2 us at 8 bytes, expected 1.8 (at most 2.16) by a profile without a source" in slow.reason
    assert slow.remedy


def test_units_are_converted_and_the_largest_message_counts_by_default() -> None:
    found = plan(bandwidth=BANDWIDTH)
    assert told(found, "bandwidth", rates(1, 10, 20_000)).result == "passed"
    slow = told(found, "bandwidth", rates(24_000, 24_000, 19_000))
    assert slow.result == "failed" and "expected 2.4e+04 (at least 1.92e+04)" in slow.reason


def test_what_the_profile_does_not_say_is_not_judged_and_said() -> None:
    unknown = told(plan(), "latency", latency(900))
    assert (unknown.result, unknown.reason) == (
        "passed",
        "as measured; not judged: partitions.thin.performance.latency is unknown",
    )
    other_size = told(plan(latency=replace(LATENCY, at=3)), "latency", latency(900))
    other_layout = told(plan(latency=replace(LATENCY, ranks_per_node=4)), "latency", latency(900, 900, 900, 900))
    for each in (unknown, other_size, other_layout):
        assert each.result == "passed" and each.judgement is not None and each.judgement.result == "unknown"


def test_the_source_of_what_is_expected_is_named() -> None:
    lumi = CATALOG.site("lumi-c")
    found = replace(plan(), site=lumi, partition="cpu")
    slow = told(found, "latency", latency(9, 9, 9, 30.0))
    assert slow.judgement is not None
    assert slow.judgement.source.startswith("github.com/Lumi-supercomputer/lumi-reframe-tests@")
    assert slow.judgement.source.endswith(", 2025-12-23")


def causes(found: Any, measure: Measure, figures: list[Figure], seen: Evidence) -> list[str]:
    judgement = told(found, measure, figures, seen).judgement
    assert judgement is not None and judgement.result == "slow"
    return judgement.causes


def test_tcp_instead_of_the_fabric_is_the_cause() -> None:
    found = plan("infiniband", latency=LATENCY)
    slow = latency(9, 9, 9, 30.0)
    assert causes(found, "latency", slow, Evidence("tcp")) == ["TCP: MPI goes over tcp and not over infiniband"]
    (unknown,) = causes(found, "latency", slow, Evidence("verbs;ofi_rxm"))
    assert unknown == "unknown: it goes over verbs;ofi_rxm"
    seen = Evidence("verbs", conditions={"latency": [look()]})
    assert causes(found, "latency", slow, seen) == [
        "unknown: it goes over verbs; binding and load of the nodes are as expected"
    ]
    # Where TCP is all that there is, it is no cause.
    assert causes(plan("ethernet", latency=LATENCY), "latency", slow, Evidence("tcp"))[0].startswith("unknown")


def test_sockets_of_nccl_and_no_way_to_the_gpus_are_causes() -> None:
    found = plan("efa", nccl_bus_bandwidth=NCCL)
    slow = rates(3.0, unit="GB/s")
    assert causes(found, "nccl_bus_bandwidth", slow, Evidence(networks=["Socket"])) == [
        "TCP: NCCL goes over sockets and not over efa"
    ]
    (no_path,) = causes(found, "nccl_bus_bandwidth", slow, Evidence(networks=["AWS Libfabric"]))
    assert no_path.startswith("no GPU path: ")
    (other,) = causes(found, "nccl_bus_bandwidth", slow, Evidence(networks=["AWS Libfabric"], direct=True))
    assert other.startswith("unknown: it goes over AWS Libfabric")


def test_the_figure_within_a_node_tells_network_from_nodes() -> None:
    found = plan("ethernet", bandwidth=BANDWIDTH, bandwidth_within_node=WITHIN)
    between = Result(group="osu", name="b", result="passed", judgement=judge(found, "bandwidth", rates(9), 2, 1))
    for value, cause in ((29_000, "the network between the nodes"), (900, "the nodes, not the network between them")):
        judgement = judge(found, "bandwidth_within_node", rates(value), 1, 2)
        within = Result(group="osu", name="w", result="passed", judgement=judgement)
        (result, _) = judged_results(found, [between, within], Evidence())
        assert result.judgement is not None and result.judgement.causes[0].startswith(cause)


def look(node: str = "n1", when: str = "before", **more: Any) -> NodeCondition:
    usual: dict[str, Any] = {"cpus": [0, 1], "processors": 8, "running": 2, "clock": [], "tcp": [10, 0]}
    return NodeCondition(node, when, **{**usual, **more})


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        ([look(cpus=[0]), look(cpus=[0])], "binding: 2 ranks on n1 share 1 processor (0)"),
        ([look(when="after", clock=[800000, 3500000, 3500000])], "clock: n1 runs at 0.8 of 3.5 GHz, its limit is 3.5"),
        ([look(when="after", clock=[1200000, 1200000, 3500000])], "clock: n1 runs at 1.2 of 3.5 GHz, its limit is 1.2"),
        ([look(), look(when="after", tcp=[5010, 50])], "losses: n1 sent 50 of 5000 TCP segments again"),
        ([look(), look(when="after", tcp=[50010, 9], clock=[3400000, 3500000, 3500000])], ""),
        ([look(cpus=[0]), look(cpus=[1]), look("n2", cpus=[0])], ""),
    ],
)
def test_what_is_wrong_on_a_node_is_named(seen: list[NodeCondition], cause: str) -> None:
    assert faults_on_nodes(seen) == [cause] * bool(cause)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ([look(running=11)], "11 programs ran on the 8 processors of n1 as the test began"),
        # Where the kernel counts who waited, the moment of the start does not matter.
        ([look(running=11, waits=[50.0, 900.0]), look(when="after", waits=[50.4, 904.0])], ""),
        (
            [look(waits=[50.0, 900.0]), look(when="after", waits=[52.0, 904.0])],
            "programs on n1 waited for a processor in 50% of the time",
        ),
    ],
)
def test_a_slow_figure_of_a_busy_node_is_not_judged(seen: list[NodeCondition], words: str) -> None:
    assert other_work(seen) == [words] * bool(words)
    slow = latency(9, 9, 9, 30.0)
    result = told(plan("ethernet", latency=LATENCY), "latency", slow, Evidence(conditions={"latency": seen}))
    assert result.judgement is not None
    if not words:
        assert (result.result, result.judgement.result) == ("failed", "slow")
        return
    assert (result.result, result.judgement.result) == ("skipped", "busy")
    assert f"not judged: the node is busy: {words}; 30 us at 8 bytes, expected 1.8" in result.reason
    # What is wrong all the same is a fault, and a figure of a busy node is no fact.
    lossy = [*seen, look(when="after", tcp=[5010, 50])]
    fault = told(plan("ethernet", latency=LATENCY), "latency", slow, Evidence(conditions={"latency": lossy}))
    assert fault.result == "failed" and fault.judgement is not None and len(fault.judgement.causes) == 2
    unknown = told(plan(), "latency", slow, Evidence(conditions={"latency": seen}))
    assert measured_facts(Run(started="", site="s", engine="e", results=[unknown])) == []


def test_ranks_of_a_node_that_talk_by_tcp_do_not_share_memory() -> None:
    found = plan("infiniband", bandwidth_within_node=WITHIN)
    judgement = judge(found, "bandwidth_within_node", rates(900), 1, 2)
    result = Result(group="osu", name="w", result="passed", judgement=judgement)
    seen = Evidence(conditions={"bandwidth_within_node": [look(), look(when="after", tcp=[90_010, 0])]})
    (slow,) = judged_results(found, [result], seen)
    assert (
        "likely cause: TCP: ranks of one node do not share memory, n1 sent 90000 TCP segments meanwhile" in slow.reason
    )


def test_a_command_is_watched_and_keeps_its_status() -> None:
    done = subprocess.run(["sh", "-c", watched("echo here; exit 3")], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    before, after = read_conditions(done.stdout.splitlines())
    assert (before.when, after.when, before.node) == ("before", "after", os.uname().nodename)
    assert set(before.cpus) == os.sched_getaffinity(0)
    assert before.processors >= len(before.cpus) and before.running >= 1
    assert "here" in done.stdout.splitlines()


def test_the_better_of_two_starts_counts() -> None:
    def started(measure: Measure, value: float) -> Result:
        judgement = JudgedFigure(measure=measure, result="slow", measured=value, unit="x", nodes=2, ranks_per_node=1)
        return Result(group="osu", name=measure, result="passed", judgement=judgement)

    assert better(started("latency", 3.0), started("latency", 2.0)) == started("latency", 2.0)
    assert better(started("bandwidth", 3.0), started("bandwidth", 2.0)) == started("bandwidth", 3.0)
    ended = Result(group="osu", name="latency", result="failed")
    assert better(started("latency", 3.0), ended) == started("latency", 3.0)


def test_what_was_measured_is_a_profile_that_judges_the_next_run(hpcgen: Command, tmp_path: Any) -> None:
    judgement = judge(plan(), "latency", latency(1.25), 2, 1)
    results = [Result(group="osu", name="latency", result="passed", nodes=["n1", "n2"], judgement=judgement)]
    slow = replace(results[0], result="failed")
    run = Run(started="2026-11-20T10:00:00Z", site="lumi-c", engine="singularity", results=results, partition="cpu")
    text = measured_profile(replace(run, results=[*results, slow]), "mine", "lumi-c", "net.sif")
    (tmp_path / "mine.yaml").write_text(text)
    checked = hpcgen("check", str(tmp_path / "mine.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    site = CATALOG.site(str(tmp_path / "mine.yaml"))
    facts = site.partitions["cpu"].performance
    # The site's own tolerance stays.
    assert facts["latency"] == PerformanceFact(value=1.25, unit="us", at=1, nodes=2, ranks_per_node=1, tolerance=0.2)
    source = site.source_of("partitions.cpu.performance.latency")
    assert source is not None and source.from_ == "measured by hpcgen test of net.sif on n1, n2, by singularity"
    # The parent's other figure stays.
    assert facts["bandwidth"].value == 24044


@pytest.mark.parametrize(
    ("fact", "wrong"),
    [
        ("latency: {value: 2, unit: MB/s, nodes: 2, ranks_per_node: 1}", "latency is not measured in MB/s"),
        (
            "bandwidth: {value: 2, unit: GB/s, nodes: 2, ranks_per_node: 1, tolerance: 1}",
            "no bandwidth would be too low",
        ),
        ("speed: {value: 2, unit: GB/s, nodes: 2, ranks_per_node: 1}", "speed"),
    ],
)
def test_figures_that_cannot_be_are_refused(fact: str, wrong: str, tmp_path: Any) -> None:
    text = f"name: mine\nextends: lumi-c\npartitions:\n  cpu:\n    performance:\n      {fact}\n"
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        CATALOG.site(str(tmp_path / "mine.yaml"))
    assert wrong in str(error.value)


@pytest.mark.parametrize(("measured", "drift"), [(2.1, 0), (30.0, 1), (None, 0)])
def test_the_doctor_holds_figures_against_the_newest_recorded_test(measured: float | None, drift: int) -> None:
    site = CATALOG.site("lumi-c")

    def run(day: str, value: float) -> Run:
        figures = latency(9, 9, 9, value)
        judgement = judge_at(site, "cpu", "latency", figures, 2, 1)
        result = Result(group="osu", name="latency", result="passed", figures=figures, judgement=judgement)
        return Run(started=day, site="lumi-c", engine="singularity", results=[result], partition="cpu")

    runs = [run("2026-11-21", measured), run("2026-11-20", 99.0)] if measured is not None else []
    head: dict[str, Any] = {"id": "a", "hpcgen": "0.2.0", "started": "2026-11-19", "stack": "net-test"}
    head |= {"format": "singularity", "content": "0" * 64, "engine": "singularity"}
    record = BuildRecord(site="lumi-c", partition="cpu", tests=runs, **head)
    report = Report("lumi-c", "cpu", "asked for", (), (), (), {})
    found = with_figures(report, site, CATALOG.site_document("lumi-c"), [record])
    assert len(found.drift) == drift
    assert ("partitions.cpu.performance.latency" in found.agree) == (measured == 2.1)
    unseen = {each.fact for each in found.unseen}
    assert "partitions.cpu.performance.bandwidth" in unseen
    assert ("partitions.cpu.performance.latency" in unseen) == (measured is None)
    for each in found.drift:
        assert (each.said, each.seen, each.how) == ("1.8 us", "30 us", "hpcgen test of 2026-11-21")
        assert each.where.file.endswith("lumi-c.yaml")


@pytest.mark.parametrize(
    ("seconds", "starts", "result"), [((9.0, 40.0, 2.5), 3, "passed"), ((9.0, 8.0, 9.5), 3, "failed")]
)
def test_a_start_that_took_too_long_is_tried_again(seconds: tuple[float, ...], starts: int, result: str) -> None:
    fact = PerformanceFact(value=2, unit="s", nodes=2, ranks_per_node=1, tolerance=0.5)
    found = plan(start_up=fact)
    found = replace(found, job=replace(found.job, nodes=2, ranks_per_node=1))
    ended = [StartResult(0, [], each) for each in seconds]
    later = iter(ended[1:])
    tests = [Result(group="contract", name=name, result="passed") for name in ("nodes", "ranks")]
    nodes, ranks = judged_start(found, tests, ended[0], lambda: next(later))
    assert nodes == tests[0]
    assert ranks.result == result and ranks.judgement is not None
    assert (ranks.judgement.starts, ranks.judgement.measured) == (starts, min(seconds))
    assert ("likely cause: unknown: a start waits for" in ranks.reason) == (result == "failed")
