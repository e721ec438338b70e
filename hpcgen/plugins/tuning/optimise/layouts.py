"""Nodes, ranks and threads: by series of rows over nodes where the workload has some, else as the site says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.measurements.cited import cited
from hpcgen.plugins.tuning.measurements.records import HIGHER_IS_BETTER, Measurement, Software
from hpcgen.plugins.tuning.optimise.evidence import as_planned, computes_alike, estimate_of, is_on_nodes_of, unsaid
from hpcgen.plugins.tuning.optimise.records import Estimate, LayoutOption
from hpcgen.plugins.tuning.predict.efficiency import node_speed
from hpcgen.plugins.tuning.predict.pairs import SPEEDS
from hpcgen.plugins.tuning.predict.prediction import PredictionRefusal
from hpcgen.plugins.tuning.predict.scaling import ScalingModel, fit_scaling, measure_next, points_of
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

USUAL_EFFICIENCY = 0.8
"""The share of linear scaling that a request for efficiency wants where it does not say it."""


class NodeShape(msgspec.Struct, frozen=True, order=True):
    """How a node is filled."""

    ranks_per_node: int
    threads_per_rank: int


def layouts(
    rows: Sequence[Measurement], software: Software, plan: Plan, request: OptimiseRequest
) -> list[LayoutOption]:
    """Every layout that was measured on the plan's nodes with the framework, the one to take marked."""
    options = []
    for shape, series in sorted(_series(rows, software, plan).items()):
        if _fits(shape, request):
            options.append(_option(shape, series, software, plan, request))
    known = [each for each in options if each.estimate.value is not None]
    if not known:
        return options
    metric = known[0].estimate.metric
    comparable = [each for each in known if each.estimate.metric == metric]
    best = min(comparable, key=lambda each: _cost(each, request))
    saving = request.goal == "efficiency"
    least = "the least node time" if saving else "the fastest"
    taken = f"{least} of those that were measured" if len(comparable) > 1 else "the only one that was measured"
    other = "it takes more node time" if saving else "slower"
    replace = msgspec.structs.replace
    return [replace(each, chosen=each is best, why=taken if each is best else other) for each in options]


def _cost(option: LayoutOption, request: OptimiseRequest) -> float:
    """What the goal wants little of: time, or for efficiency the time of all nodes together."""
    value = option.estimate.value or 0.0
    time = 1 / value if option.estimate.metric in HIGHER_IS_BETTER else value
    return time * option.nodes if request.goal == "efficiency" else time


def _series(rows: Sequence[Measurement], software: Software, plan: Plan) -> dict[NodeShape, list[Measurement]]:
    """The rows over nodes by layout, of the metric that comes first; the host's MPI before others."""
    found: dict[NodeShape, list[Measurement]] = defaultdict(list)
    here = [
        row
        for row in rows
        if row.software.framework == software.framework
        and row.software.compiler == software.compiler
        and is_on_nodes_of(plan, row)
        and row.threads_per_rank is not None
        and as_planned(row, plan)
        and computes_alike(plan, row)
    ]
    metric = next((each for each in SPEEDS if any(row.metric == each for row in here)), None)
    for row in here:
        if row.metric == metric and row.threads_per_rank is not None:
            found[NodeShape(row.ranks_per_node, row.threads_per_rank)].append(row)
    return {shape: _one_mpi(series) for shape, series in found.items()}


def _one_mpi(series: list[Measurement]) -> list[Measurement]:
    """The rows of one kind of MPI: a job uses the host's where there is one."""
    kinds = sorted({row.software.mpi for row in series}, key=lambda mpi: (mpi != "host", mpi))
    return sorted((row for row in series if row.software.mpi == kinds[0]), key=lambda row: row.nodes)


def _fits(shape: NodeShape, request: OptimiseRequest) -> bool:
    limits = request.limits
    return not (
        (limits.ranks_per_node is not None and shape.ranks_per_node > limits.ranks_per_node)
        or (limits.threads is not None and shape.threads_per_rank > limits.threads)
    )


def _option(
    shape: NodeShape, series: list[Measurement], software: Software, plan: Plan, request: OptimiseRequest
) -> LayoutOption:
    """A layout on as many nodes as the goal wants, and what is known of it there."""
    nodes = _most(shape, request)
    why, model = "", None
    try:
        model = fit_scaling(points_of(series), measure_next(series[0]))
    except InputError as error:
        why = error.problems[0].message
    except MissingToolError:
        # Without a law, what was measured is all there is to choose from.
        nodes = _most_measured(series, nodes, request)
    wanted = _efficiency(request)
    if model is not None and wanted is not None:
        try:
            nodes = model.most_nodes(wanted, nodes or series[-1].nodes)
        except InputError as error:
            why, model = error.problems[0].message, None
    nodes = nodes or plan.job.nodes
    exact = next((row for row in series if row.nodes == nodes), None)
    if exact is not None:
        why = unsaid(exact, software)
        alike = [row for row in series if row is not exact and unsaid(row, software) == why]
        estimate = estimate_of(exact, [exact, *alike], why)
    else:
        estimate = _predicted(model, nodes, series, software) if model else Estimate(basis="none", why=why)
    return LayoutOption(
        nodes=nodes,
        ranks_per_node=shape.ranks_per_node,
        threads_per_rank=shape.threads_per_rank,
        chosen=False,
        estimate=estimate,
        efficiency=round(model.efficiency(nodes), 4) if model is not None and nodes >= model.first else None,
    )


def _most_measured(series: list[Measurement], limit: int | None, request: OptimiseRequest) -> int | None:
    """The most nodes of a series that keep the efficiency that is wanted; ``limit`` where none does."""
    wanted = _efficiency(request) or 0.0
    shares = [(row.nodes, node_speed(row) / node_speed(series[0])) for row in series]
    good = (nodes for nodes, share in shares if share >= wanted and (limit is None or nodes <= limit))
    return max(good, default=limit)


def _efficiency(request: OptimiseRequest) -> float | None:
    """The share of linear scaling that a request wants; None where it wants none."""
    return request.limits.efficiency or (USUAL_EFFICIENCY if request.goal == "efficiency" else None)


def _predicted(model: ScalingModel, nodes: int, series: Sequence[Measurement], software: Software) -> Estimate:
    """What a law of scaling says of a number of nodes that was not measured."""
    answer, first = model.predict(nodes), series[0]
    rows = [cited(row) for row in series]
    if isinstance(answer, PredictionRefusal):
        return Estimate(basis="none", why=answer.reason, rows=rows)
    values = [answer.low, answer.value, answer.high]
    # A law is of seconds: of a speed, those of a unit of work.
    low, value, high = sorted(1 / each for each in values) if first.metric in HIGHER_IS_BETTER else values
    why = "; ".join(filter(None, [f"by the law of scaling ({model.form})", unsaid(first, software)]))
    layout = f"{nodes} x {first.ranks_per_node} x {first.threads_per_rank}"
    return Estimate(
        basis="predicted", metric=first.metric, value=value, low=low, high=high, layout=layout, rows=rows, why=why
    )


def _most(shape: NodeShape, request: OptimiseRequest) -> int | None:
    """The most nodes that the limits allow a layout; None where they do not say."""
    limits = request.limits
    by_ranks = max(1, limits.ranks // shape.ranks_per_node) if limits.ranks is not None else None
    return min((each for each in (limits.nodes, by_ranks) if each is not None), default=None)
