"""Outcomes as measurements, as collections keep them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from hpcgen.backends.engines import engine_for
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SiteEngine
from hpcgen.launch.start import host_mpi
from hpcgen.plugins.tuning.bench.intervals import Interval, typical
from hpcgen.plugins.tuning.bench.running import MEMORY, BenchOutcome, Rate, layout_of, taken_away
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload

INSTALLED = {"hub": "hub", "pip": "pip", "wheel": "pip", "source": "source", "package": "package"}
"""Words of blocks' option ``install`` → those of measurements."""


def rows_of(outcome: BenchOutcome, today: str, command: str) -> list[Measurement]:
    """The rate, the memory, and what the first step took more; nothing for what could not run, and programs of users.

    What a figure of theirs is, no model could know.
    """
    if not outcome.rates or outcome.workload.own is not None:
        return []
    rates = [outcome.rates[number] for number in sorted(outcome.rates)]
    ranks, threads = layout_of(outcome)
    common: dict[str, Any] = {
        "workload": workload_of(outcome),
        "software": software_of(outcome, rates[0]),
        "hardware": hardware_of(outcome.case.job.plan),
        "nodes": outcome.case.job.plan.job.nodes,
        "ranks_per_node": ranks,
        "threads_per_rank": threads,
        "interop_threads": outcome.variant.interop,
        "measured": today,
        "command": command,
    }
    found = [_row(outcome.workload.metric, typical(outcome.values), len(rates), common)]
    for metric in MEMORY:
        if memory := outcome.memory(metric):
            found.append(_row(metric, typical(memory), len(memory), common))
    overheads = [each.overhead for each in rates]
    # With a cache only the first start of all compiles.
    if min(overheads) > 0 and not (outcome.case.cache and outcome.variant.compiler):
        found.append(_row("first_epoch_overhead", typical(overheads), len(rates), common))
    return found


def _row(metric: Any, number: Interval, repetitions: int, common: dict[str, Any]) -> Measurement:
    # Five digits are more than any of them is worth.
    known: dict[str, Any] = {
        name: float(f"{value:.5g}") for name, value in msgspec.structs.asdict(number).items() if value is not None
    }
    return Measurement(**common, **known, metric=metric, repetitions=repetitions)


def workload_of(outcome: BenchOutcome) -> Workload:
    """The workload as it was run."""
    record, variant = outcome.workload.record, outcome.variant
    return replace(record, batch=variant.batch or record.batch, precision=variant.precision or record.precision)


def software_of(outcome: BenchOutcome, rate: Rate) -> Software:
    """The image, what computed in it, and the variables that were set for it."""
    variant, case = outcome.variant, outcome.case
    plan = case.job.plan
    block = plan.block(outcome.framework)
    install: Any = INSTALLED.get(str(block.options.get("install", "")), "") if block is not None else ""
    preloaded = {"LD_PRELOAD": rate.library} if rate.library else {}
    taken = dict.fromkeys(taken_away(outcome), "")
    return Software(
        framework=outcome.framework,
        version=rate.version,
        install=install,
        compiler="" if variant.compiler == "none" else variant.compiler,
        stack=plan.stack.name if case.python is None else None,
        engine=case.engine,
        mpi=_mpi(outcome),
        environment={**plan.stack.run.environment, **case.job.inside, **variant.environment, **preloaded, **taken},
        blocks={each.name: each.version for each in plan.blocks if not each.build_only},
        content=case.content,
        foreign=case.image if case.foreign else "",
        unknown=case.unknown,
    )


def _mpi(outcome: BenchOutcome) -> str:
    """Whose MPI the ranks used: of the host or of the image; "" for one rank."""
    plan = outcome.case.job.plan
    if layout_of(outcome)[0] * plan.job.nodes == 1:
        return ""
    known = plan.site.containers.engines.get(plan.engine, SiteEngine())
    return "host" if host_mpi(plan, engine_for(plan.engine, known.version)) is not None else "image"


def hardware_of(plan: Plan) -> Hardware:
    """The node, as the profile of the site describes it; GPUs that the job does not ask for are not told."""
    node = plan.site.partitions[plan.partition]
    gpu = node.gpu if plan.job.gpus_per_node else None
    fabric = plan.fabric.kind
    return Hardware(
        name=f"{plan.site.name}-{plan.partition}"[:64],
        site=plan.site.name,
        partition=plan.partition,
        cpu=node.cpu.target,
        model=node.cpu.model,
        cores=node.cpu.cores,
        memory_gb=node.memory.total_gb,
        gpu=gpu.model if gpu is not None else "",
        gpus=gpu.count if gpu is not None else None,
        fabric="" if fabric == "none" else fabric,
    )
