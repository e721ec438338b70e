"""What a test measured, held against what the profile expects of the partition, and why it may be slow. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from hpcgen.backends.hardware.fabrics import FAST, SLOW, SOCKETS
from hpcgen.core.model.performance import PRINTED_IN, TIMES, Measure, limit
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import Figure, JudgedFigure, TestResult
from hpcgen.core.model.site import Site
from hpcgen.running.verify.conditions import NodeCondition, by_tcp, faults_on_nodes, looked_at, other_work

START_UP = "start-up"
REMEDY = (
    "remove the cause and test again; if the machine itself has changed, `hpcgen test --nodes N --record FILE` writes "
    "its new figures"
)
_COMPANIONS: dict[str, Measure] = {"latency": "latency_within_node", "bandwidth": "bandwidth_within_node"}
_WITHIN_NODE = frozenset(_COMPANIONS.values())
_BETWEEN_NODES = ("latency", "bandwidth", "nccl_bus_bandwidth")


class Evidence(msgspec.Struct, frozen=True):
    """What was seen while the tests ran.

    provider: libfabric's provider that MPI named, or ``ucx``; "" if it named none.
    networks: those that NCCL named; None without a test of it. direct: whether it named a direct path to the GPUs.
    conditions: of the nodes, by measure.
    """

    provider: str = ""
    networks: list[str] | None = None
    direct: bool = False
    conditions: dict[str, list[NodeCondition]] = {}


def figure_of(measure: Measure, figures: Sequence[Figure], at: int | None = None) -> Figure | None:
    """The number that counts: at a size, or by default the smallest message's time, the average, or the last rate."""
    if at is not None:
        return next((each for each in figures if each.at == at), None)
    if measure in TIMES:
        return next(iter(figures), None)
    average = [each for each in figures if each.at is None]
    return next(iter(average or reversed(figures)), None)


def judge(
    site: Site, partition: str, measure: Measure, figures: Sequence[Figure], nodes: int, ranks: int
) -> JudgedFigure | None:
    """Hold figures against the profile's; None where there is no figure at all.

    ``nodes``, ``ranks``: the layout that was measured, ranks on each node.
    """
    fact = site.partitions[partition].performance.get(measure)
    # A block of somebody else's may print another table than it says.
    figures = [each for each in figures if each.unit == PRINTED_IN[measure]]
    figure = figure_of(measure, figures, fact.at if fact is not None else None)
    if fact is not None and (figure is None or (fact.nodes, fact.ranks_per_node) != (nodes, ranks)):
        fact, figure = None, figure_of(measure, figures)
    if figure is None:
        return None
    unknown = JudgedFigure(
        measure=measure,
        result="unknown",
        measured=figure.value,
        unit=figure.unit,
        nodes=nodes,
        ranks_per_node=ranks,
        at=figure.at,
    )
    worst = limit(measure, fact) if fact is not None else None
    if fact is None or worst is None:
        return unknown
    good = figure.value <= worst if measure in TIMES else figure.value >= worst
    return replace(
        unknown,
        result="good" if good else "slow",
        expected=fact.in_unit(PRINTED_IN[measure]),
        limit=worst,
        source=_source(site, path_of(partition, measure)),
    )


def better(one: TestResult, other: TestResult) -> TestResult:
    """The result with the better figure; of two starts of a test the faster one says what the machine can do."""
    first, second = one.judgement, other.judgement
    if first is None or second is None:
        return one
    faster = second.measured < first.measured if first.measure in TIMES else second.measured > first.measured
    return other if faster else one


def path_of(partition: str, measure: str) -> str:
    """Where a profile says a figure."""
    return f"partitions.{partition}.performance.{measure}"


def judged_results(plan: Plan, results: Iterable[TestResult], seen: Evidence) -> list[TestResult]:
    """The results with what their figures mean: a test that is too slow has failed, and says why."""
    kept = list(results)
    others = {each.judgement.measure: each.judgement for each in kept if each.judgement is not None}
    return [_judged(plan, each, others, seen) for each in kept]


def _judged(plan: Plan, result: TestResult, others: dict[str, JudgedFigure], seen: Evidence) -> TestResult:
    found = result.judgement
    if found is None or result.result != "passed":
        return result
    if found.result == "unknown":
        # The time of a start is nobody's benchmark, and has its own column.
        if found.measure == "start_up":
            return result
        words = f"not judged: {path_of(plan.partition, found.measure)} is unknown"
        if others_run := _busy(found, seen):
            result = replace(result, judgement=replace(found, result="busy"))
            words += f", and {others_run}"
        return _with_words(result, words)
    more = "at most" if found.measure in TIMES else "at least"
    at = f" at {found.at} bytes" if found.at is not None else ""
    at += f", the best of {found.starts} starts" if found.starts > 1 else ""
    words = f"{found.measured:.4g} {found.unit}{at}, expected {found.expected:.4g} ({more} {found.limit:.4g})"
    if found.result == "good":
        return _with_words(result, words)
    causes = _causes(plan, found, seen)
    others_run = _busy(found, seen)
    if others_run and not causes:
        # What is slow by the work of others is no fault, and no proof that there is none.
        result = replace(result, result="skipped", judgement=replace(found, result="busy"))
        return _with_words(result, f"not judged: {others_run}; {words}")
    causes += ([others_run] if others_run else []) + _by_companion(found, others, seen)
    causes = causes or [_nothing_seen(found, seen)]
    name = found.measure.replace("_", " ")
    reason = f"{name} is {words} by {found.source}; likely cause: {'; '.join(causes)}"
    judgement = replace(found, causes=causes)
    return replace(result, result="failed", reason=reason, remedy=REMEDY, judgement=judgement)


def _with_words(result: TestResult, words: str) -> TestResult:
    return replace(result, reason="; ".join(filter(None, [result.reason, words])))


def _busy(found: JudgedFigure, seen: Evidence) -> str:
    work = other_work(seen.conditions.get(found.measure, []))
    return f"the node is busy: {'; '.join(work)}" if work else ""


def _causes(plan: Plan, found: JudgedFigure, seen: Evidence) -> list[str]:
    causes = []
    gpus = found.measure == "nccl_bus_bandwidth"
    if gpus and seen.networks is not None:
        kind = plan.site.gpu_fabric_of(plan.partition)
        if kind in FAST and SOCKETS in seen.networks:
            causes.append(f"TCP: NCCL goes over sockets and not over {kind}")
        elif seen.networks and not seen.direct:
            causes.append("no GPU path: NCCL names no direct way between GPU and network (GDRDMA)")
    elif found.measure in _BETWEEN_NODES and plan.fabric.kind in FAST and seen.provider.split(";")[0] in SLOW:
        wanted = f"{plan.fabric.provider} over " if plan.fabric.provider else ""
        causes.append(f"TCP: MPI goes over {seen.provider} and not over {wanted}{plan.fabric.kind}")
    nodes = seen.conditions.get(found.measure, [])
    if found.measure in _WITHIN_NODE and (words := by_tcp(nodes)):
        causes.append(f"TCP: ranks of one node do not share memory, {words}")
    return causes + faults_on_nodes(nodes)


def _by_companion(found: JudgedFigure, others: dict[str, JudgedFigure], seen: Evidence) -> list[str]:
    within = others.get(_COMPANIONS.get(found.measure, ""))
    if within is None or within.result == "unknown":
        return []
    figure = f"within a node it is {within.measured:.4g} {within.unit}"
    if within.result == "good":
        over = f", over {seen.provider}" if seen.provider else ""
        return [f"the network between the nodes{over}: {figure}, as expected"]
    return [f"the nodes, not the network between them: {figure}, which is too slow as well"]


def _nothing_seen(found: JudgedFigure, seen: Evidence) -> str:
    if found.measure == "start_up":
        return "unknown: a start waits for the launcher, the image's file system and the slowest node"
    used = seen.networks if found.measure == "nccl_bus_bandwidth" else [seen.provider]
    over = " and ".join(filter(None, used or [])) or "an unnamed network"
    known = looked_at(seen.conditions.get(found.measure, []))
    fine = f"; {' and '.join(known)} of the nodes are as expected" if known else ""
    return f"unknown: it goes over {over}{fine}"


def _source(site: Site, path: str) -> str:
    source = site.source_of(path)
    return f"{source.from_}, {source.as_of or source.checked}" if source is not None else "a profile without a source"
