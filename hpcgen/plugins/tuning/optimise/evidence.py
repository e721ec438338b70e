"""What is measured of a candidate: rows of its own software on its own machine, or ratios to the default's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

import msgspec

from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.bench.rows import INSTALLED
from hpcgen.plugins.tuning.measurements.lookup import Measurements, machines
from hpcgen.plugins.tuning.measurements.records import (
    HIGHER_IS_BETTER,
    Kind,
    Measurement,
    Metric,
    Software,
    layout_words,
    software_words,
    value_words,
)
from hpcgen.plugins.tuning.optimise.candidates import RunCandidate
from hpcgen.plugins.tuning.optimise.records import Estimate
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

SPEEDS: tuple[Metric, ...] = ("samples_per_second", "seconds_per_epoch", "seconds_per_batch", "seconds", "gflops")
"""Metrics that say how fast a program is, what people look at first."""
RUNTIMES = frozenset({"onnxruntime", "openvino", "tvm"})
"""What runs the models of a framework in its place; stacks of theirs say in ``suits`` whose they take."""
FEWEST = 3
"""Machines on which a ratio was measured before their span says anything of another one."""


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
    if row.compiler in RUNTIMES:
        # `hpcgen bench` writes the model by its framework and runs it in the other's place.
        row = Software(framework=row.compiler)
    return (
        row.framework == software.framework
        and _has_version(row, software)
        and row.compiler == software.compiler
        and row.install in ("", software.install)
    )


def _has_version(row: Software, software: Software) -> bool:
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


def measured_here(rows: Iterable[Measurement], software: Software, plan: Plan) -> Estimate:
    """The speed of the same software on the same partition, by the fewest nodes that were measured."""
    found = [
        row
        for row in rows
        if row.metric in SPEEDS
        and is_of(row.software, software)
        and is_on_nodes_of(plan, row)
        and computes_alike(plan, row)
        and as_planned(row, plan)
    ]
    for metric in SPEEDS:
        of_metric = [row for row in found if row.metric == metric]
        fewest = min((row.nodes for row in of_metric), default=0)
        of_layout = [row for row in of_metric if row.nodes == fewest]
        if of_layout:
            best = (max if metric in HIGHER_IS_BETTER else min)(of_layout, key=lambda row: row.value)
            return Estimate(
                basis="measured",
                metric=metric,
                value=best.value,
                low=best.low,
                high=best.high,
                rows=[words(row) for row in of_layout],
                why=f"on {fewest} node(s), the best layout that was measured" if len(of_layout) > 1 else "",
            )
    return Estimate(basis="none")


def ratio_to(rows: Sequence[Measurement], software: Software, default: Software, plan: Plan) -> Estimate:
    """How much faster than the default's the software is, by ratios that were measured of the same workload.

    On the same partition and of this release where that was measured; else there of another release, else on other
    machines with (or without) GPUs alike, which makes it a prediction.
    """
    found = [
        row
        for row in [*rows, *_pairs(rows)]
        if row.metric == "speedup"
        and row.baseline is not None
        and _differs_alike(row.software, row.baseline, software, default)
        and computes_alike(plan, row)
    ]
    there = [row for row in found if is_on_nodes_of(plan, row)]
    here = [row for row in there if _has_version(row.software, software)]
    used = here or there or found
    if not used:
        return Estimate(basis="none")
    other = "of other releases" if there else "on other machines"
    value = math.exp(statistics.fmean(math.log(row.value) for row in used))
    several = not here and len(used) >= FEWEST
    return Estimate(
        basis="measured" if here else "predicted",
        metric="speedup",
        value=value,
        low=min(row.low or row.value for row in used) if several else None,
        high=max(row.high or row.value for row in used) if several else None,
        rows=[words(row) for row in used],
        why="" if here else f"measured {other}",
    )


def _pairs(rows: Sequence[Measurement]) -> list[Measurement]:
    """Speeds of one framework's release in one layout, with a graph compiler and without, as ratios."""
    speeds = [row for row in rows if row.metric in SPEEDS]
    plain = {_setting(row): row for row in speeds if not row.software.compiler}
    found = []
    for row in speeds:
        other = plain.get(_setting(row))
        if row.software.compiler and other is not None:
            ratio = row.value / other.value
            value = ratio if row.metric in HIGHER_IS_BETTER else 1 / ratio
            known = {"metric": "speedup", "value": value, "baseline": other.software, "low": None, "high": None}
            found.append(msgspec.structs.replace(row, **known))
    return found


def _setting(row: Measurement) -> tuple[object, ...]:
    """All that two rows of a pair have in common."""
    software, layout = row.software, (row.nodes, row.ranks_per_node, row.threads_per_rank)
    said = (software.framework, software.version, software.install, sorted(software.environment.items()))
    return (row.hardware.name, row.metric, row.workload.batch, row.workload.precision, *layout, str(said))


def same_release(one: Software, other: Software) -> bool:
    """Whether two are of one framework in the same major and minor release, or of two frameworks.

    What a graph compiler does for TensorFlow 1.14 says nothing of TensorFlow 2.21.
    """
    if one.framework != other.framework or one.version is None or other.version is None:
        return True
    return one.version.split(".")[:2] == other.version.split(".")[:2]


def _differs_alike(row: Software, baseline: Software, software: Software, default: Software) -> bool:
    """Whether the two of a row differ in the graph compiler, or in the way of installing, as the two candidates do."""
    if row.framework != software.framework or baseline.framework != default.framework:
        return False
    if (row.compiler, baseline.compiler) != (software.compiler, default.compiler):
        return False
    if row.version != baseline.version:
        return False
    if software.compiler != default.compiler:
        return True
    return (row.install, baseline.install) == (software.install, default.install) and row.install != baseline.install


def words(row: Measurement) -> str:
    """A row on one line, with its source."""
    against = f" against {software_words(row.baseline)}" if row.baseline else ""
    source = row.source.from_ if row.source is not None else row.command or "no source"
    measured = f"{row.workload.name}: {value_words(row)}, {software_words(row.software)}{against}"
    return f"{measured}, on {row.hardware.name}, {layout_words(row)} ({source})"


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
