"""What is measured of a candidate: rows of its own software on its own machine, or ratios to the default's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

import msgspec

from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.bench.rows import INSTALLED
from hpcgen.plugins.tuning.measurements.cited import cited, lacks
from hpcgen.plugins.tuning.measurements.lookup import Measurements, machines
from hpcgen.plugins.tuning.measurements.records import (
    HIGHER_IS_BETTER,
    Kind,
    Measurement,
    Software,
    layout_words,
)
from hpcgen.plugins.tuning.optimise.candidates import RunCandidate
from hpcgen.plugins.tuning.optimise.records import Estimate
from hpcgen.plugins.tuning.predict.pairs import SPEEDS, PairCase, RatioPair, as_run, change_of
from hpcgen.plugins.tuning.predict.terms import identity
from hpcgen.plugins.tuning.requests.records import OptimiseRequest


def software_of(candidate: RunCandidate, plan: Plan) -> Software:
    """What a plan's rows would say of its software."""
    block = plan.block(candidate.framework)
    options = block.options if block is not None else {}
    install = INSTALLED.get(str(options.get("install", "")), "")
    return msgspec.convert(
        {
            "framework": candidate.framework,
            "version": block.version if block is not None else None,
            "install": install,
            "compiler": candidate.suited.compiler,
            "stack": candidate.stack.name,
            "engine": plan.engine,
        },
        Software,
    )


def is_of(row: Software, software: Software) -> bool:
    """Whether a row's software is this one, as far as the row says what it was."""
    row = as_run(row)
    same = row.framework == software.framework and row.compiler == software.compiler
    return same and row.install in ("", software.install) and has_version(row, software)


def has_version(row: Software, software: Software) -> bool:
    """Whether a row is of the release, or does not say of which one."""
    version = software.version or ""
    return row.version is None or version == row.version or version.startswith(f"{row.version}.")


def on_gpus(plan: Plan) -> bool:
    """Whether a plan's job computes on GPUs."""
    return bool(plan.job.gpus_per_node)


def is_on_nodes_of(plan: Plan, row: Measurement) -> bool:
    """Whether a row was measured on the partition that is planned for."""
    return f"{plan.site.name}/{plan.partition}" in machines(row)


def computes_alike(plan: Plan, row: Measurement) -> bool:
    """Whether a row's job computed on GPUs as the plan's does, or as it on none."""
    return bool(row.hardware.gpu) == on_gpus(plan)


def as_planned(row: Measurement, plan: Plan) -> bool:
    """Whether a row was measured without variables, such as another allocator, that the plan does not set."""
    planned = plan.stack.run.environment
    return all(planned.get(name) == value for name, value in row.software.environment.items())


def is_in_layout_of(plan: Plan, row: Measurement) -> bool:
    """Whether a row was measured in the layout that is planned, as far as it says its own."""
    job = plan.job
    same = (row.nodes, row.ranks_per_node) == (job.nodes, job.ranks_per_node)
    return same and row.threads_per_rank in (None, job.threads_per_rank)


def rows_here(rows: Iterable[Measurement], software: Software, plan: Plan) -> list[Measurement]:
    """The speeds of the same software on the same partition, of one metric and number of nodes, the best first.

    Those that say all of themselves before others; in the layout of the plan, else on the fewest nodes.
    """
    found = [
        row
        for row in rows
        if row.metric in SPEEDS
        and is_of(row.software, software)
        and is_on_nodes_of(plan, row)
        and computes_alike(plan, row)
        and as_planned(row, plan)
    ]
    metric = next((each for each in SPEEDS if any(row.metric == each for row in found)), None)
    of_metric = [row for row in found if row.metric == metric]
    whole = [row for row in of_metric if not lacks(row)] or of_metric
    exact = [row for row in whole if is_in_layout_of(plan, row)]
    fewest = min((row.nodes for row in whole), default=0)
    taken = exact or [row for row in whole if row.nodes == fewest]
    return sorted(taken, key=lambda row: row.value, reverse=metric in HIGHER_IS_BETTER)


def speed_of(found: Sequence[Measurement], plan: Plan) -> Estimate:
    """The best of :func:`rows_here`: measured only if it says all of itself and is in the layout of the plan."""
    if not found:
        return Estimate(basis="none")
    best = found[0]
    return estimate_of(best, found, "; ".join(filter(None, [unsaid(best), elsewhere([best], plan)])))


def estimate_of(row: Measurement, rows: Sequence[Measurement], why: str = "") -> Estimate:
    """A row's number as it is: measured, or for the reason ``why`` a prediction."""
    return Estimate(
        basis="predicted" if why else "measured",
        metric=row.metric,
        value=row.value,
        low=row.low,
        high=row.high,
        layout=layout_words(row),
        rows=[cited(each) for each in rows],
        why=why,
    )


def unsaid(row: Measurement, software: Software | None = None) -> str:
    """Why a row's number is a prediction: what it does not say, and that it is of another release than ``software``."""
    missing = lacks(row)
    is_or_are = "is" if len(missing) == 1 else "are"
    found = [f"the {' and '.join(missing)} of what was measured {is_or_are} unknown"] if missing else []
    if software is not None and not has_version(as_run(row.software), software):
        found.append(f"measured with {row.software.framework} {row.software.version}")
    return "; ".join(found)


def elsewhere(rows: Iterable[Measurement], plan: Plan) -> str:
    """That none of the rows is in the layout of a plan; "" where one is."""
    if any(is_in_layout_of(plan, row) for row in rows):
        return ""
    job = plan.job
    return f"nothing was measured in {job.nodes} x {job.ranks_per_node} x {job.threads_per_rank}"


def ratios_here(known: Iterable[RatioPair], case: PairCase, plan: Plan) -> Estimate:
    """How much faster than the default's the software is, by pairs of this release on this partition."""
    change = change_of(case.software, case.baseline)
    used = [
        pair.row
        for pair in known
        if change is not None
        and (pair.change, pair.turned) == (change.name, change.turned)
        and identity(pair.row.workload) == identity(case.workload)
        and not lacks(pair.row)
        and has_version(as_run(pair.row.software), case.software)
        and has_version(as_run(pair.row.baseline or case.baseline), case.baseline)
        and is_on_nodes_of(plan, pair.row)
        and computes_alike(plan, pair.row)
        and as_planned(pair.row, plan)
    ]
    if not used:
        return Estimate(basis="none")
    ratio = math.exp(statistics.fmean(math.log(row.value) for row in used))
    found = estimate_of(used[0], used, elsewhere(used, plan))
    return msgspec.structs.replace(found, value=ratio, low=None, high=None)


def rows_of_workload(known: Measurements, request: OptimiseRequest) -> list[Measurement]:
    """The rows of the request's workload that can be trusted; none where it is not named."""
    name = workload_name(request)
    return [row for row in known.find(workload=name, doubtful=False) if row.workload.kind == kind_of(request)]


def workload_name(request: OptimiseRequest) -> str:
    """The name that rows have a workload by: training and inference of a network differ in the kind alone."""
    return request.workload.name.removesuffix("-inference")


def kind_of(request: OptimiseRequest) -> Kind:
    """The kind of the rows of a request."""
    kinds: dict[str, Kind] = {"ai_training": "training", "ai_inference": "inference"}
    return kinds.get(request.kind, "hpc")
