"""Variants of images run round by round, each round in another order; what becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from hpcgen.bench.program import Refusal, Result, command_of, read_results
from hpcgen.bench.variants import Variant
from hpcgen.bench.workloads import BenchWorkload
from hpcgen.errors import HpcgenError
from hpcgen.launch.start import start
from hpcgen.model.measurement import Metric
from hpcgen.model.plan import Plan
from hpcgen.run.here import status_text
from hpcgen.run.image_job import ImageJob
from hpcgen.support.units import counted
from hpcgen.verify.starts import StartResult, start_job, with_layout

SECONDS = 2.0
"""How long steps are timed in each start."""

TIMEOUT_S = 900.0
ROUNDS = 5
_LAST_LINES = 3
_BLOCK = {"mpi4py": "mpi4py", "pytorch": "pytorch", "tensorflow": "tensorflow"}
"""The block that brings a framework; NumPy comes with many, and the program sees for itself."""


MEMORY: tuple[Metric, ...] = ("memory_gb", "device_memory_gb")
"""What of a :class:`Rate` is memory."""


class BenchCase(msgspec.Struct, frozen=True):
    """An image that is measured: its name for people, its job on one node, and its plan hash."""

    image: str
    job: ImageJob
    content: str = ""


class Rate(msgspec.Struct, frozen=True):
    """What one start measured over all its ranks.

    ``value`` in the unit of the workload's metric; ``overhead``: seconds that the first step took more, of the slowest
    rank; ``version`` of the framework; ``memory_gb``: what all ranks of a node had together, each at its peak;
    ``library``: the allocator that was loaded; ``device_memory_gb``: the same of what their tensors took on GPUs, where
    the framework tells it.
    """

    value: float
    overhead: float
    version: str
    memory_gb: float
    library: str = ""
    device_memory_gb: float | None = None


class Outcome(msgspec.Struct):
    """One variant of one image with one workload: a rate of each round so far, or why it has none."""

    case: BenchCase
    workload: BenchWorkload
    variant: Variant
    framework: str
    rates: dict[int, Rate] = {}
    reason: str = ""

    @property
    def values(self) -> list[float]:
        """The rates alone, in the order of the rounds."""
        return [self.rates[number].value for number in sorted(self.rates)]

    def memory(self, metric: Metric) -> list[float]:
        """One of :data:`MEMORY` in the rounds that tell it, in their order."""
        told = (getattr(self.rates[number], metric) for number in sorted(self.rates))
        return [each for each in told if each is not None]


OnBegin = Callable[[Outcome, int], None]
OnEnd = Callable[[Outcome], None]
Starter = Callable[[ImageJob, float], StartResult]


def outcomes_for(
    cases: Sequence[BenchCase], workloads: Sequence[BenchWorkload], variants: Sequence[Variant]
) -> list[Outcome]:
    """What there is to measure, by workload; of each the first variant of the first image comes first."""
    return [
        Outcome(case, workload, variant, variant.framework or framework_for(workload, case.job.plan))
        for workload in workloads
        for case in cases
        for variant in variants
    ]


def run_rounds(
    outcomes: Sequence[Outcome],
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    timeout_s: float = TIMEOUT_S,
    on_begin: OnBegin = lambda outcome, number: None,
    on_end: OnEnd = lambda outcome: None,
    starter: Starter = start_job,
) -> None:
    """Run every variant of every image once in each round, workload by workload, and note the rates.

    A round begins with the variant after the one that the last round began with, so that none always runs first. What
    cannot run is not tried again. After an interrupt the outcomes have what is known so far.

    Parameters
    ----------
    seconds: how long steps are timed in each start.
    timeout_s: seconds for each start, with all that is imported and compiled in it.
    on_begin: called with what runs next, and the number of the round, from 0.
    on_end: called after each start.
    starter: starts a job here and gives what it printed.
    """
    for _, group in groupby(outcomes, key=lambda each: each.workload.name):
        cells = list(group)
        for number in range(rounds):
            first = number % len(cells)
            for cell in [*cells[first:], *cells[:first]]:
                if cell.reason:
                    continue
                on_begin(cell, number)
                rate = measure(cell, seconds, timeout_s, starter)
                if isinstance(rate, Rate):
                    cell.rates[number] = rate
                else:
                    cell.reason = rate
                on_end(cell)


def run_variants(
    cases: Sequence[BenchCase], workloads: Sequence[BenchWorkload], variants: Sequence[Variant], **how: Any
) -> list[Outcome]:
    """:func:`outcomes_for` and :func:`run_rounds`, whose parameters ``how`` are, in one."""
    outcomes = outcomes_for(cases, workloads, variants)
    run_rounds(outcomes, **how)
    return outcomes


def framework_for(workload: BenchWorkload, plan: Plan) -> str:
    """The first framework of an image that runs a workload; "" without one."""
    for name in workload.frameworks:
        if name not in _BLOCK or plan.block(_BLOCK[name]) is not None:
            return name
    return ""


def measure(cell: Outcome, seconds: float, timeout_s: float, starter: Starter = start_job) -> Rate | str:
    """Start it once: the rate, or why there is none."""
    if why := _unfit(cell):
        return why
    try:
        job = job_of(cell, seconds)
        ended = starter(job, timeout_s)
        said = read_results(ended.lines)
    except HpcgenError as refused:
        return "; ".join(each.message for each in refused.problems)
    refusals = [each.cannot for each in said if isinstance(each, Refusal)]
    results = [each for each in said if isinstance(each, Result)]
    if refusals:
        return refusals[0]
    ranks = job.plan.job.ranks
    if ended.status != 0 or len(results) != ranks:
        return _failure(ended, len(results), ranks, timeout_s)
    return _rate(cell.workload, results)


def _unfit(cell: Outcome) -> str:
    """What is known without a start."""
    names = cell.workload.frameworks
    plan = cell.case.job.plan
    if cell.framework not in names:
        wanted = cell.framework or "the image's blocks"
        return f"there is no program for it with {wanted}, only with {', '.join(names)}"
    block = _BLOCK.get(cell.framework)
    if block is not None and plan.block(block) is None:
        return f"the image has no {block}"
    if layout_of(cell)[0] < cell.workload.ranks:
        return f"it needs {counted(cell.workload.ranks, 'rank')}: --layout {cell.workload.ranks}x1"
    if cell.variant.batch and cell.workload.network is None:
        return "it has no batch"
    return ""


def job_of(cell: Outcome, seconds: float) -> ImageJob:
    """The image's job with the program as its command, in the variant's layout.

    Raises
    ------
    PolicyError: it cannot be started so, as several ranks of a stack without MPI.
    """
    variant, (ranks, threads) = cell.variant, layout_of(cell)
    job = with_layout(cell.case.job, [], ranks, variant.environment, threads=threads)
    replace = msgspec.structs.replace
    command = command_of(cell.workload, cell.framework, variant, job.plan.job, seconds)
    # A variable of the stack, which a stranger's has in the container alone, gives way to the variant's.
    inside = {name: value for name, value in job.inside.items() if name not in variant.environment}
    job = replace(job, plan=replace(job.plan, job=replace(job.plan.job, command=command)), inside=inside)
    start(job.plan, job.environment)
    return job


def layout_of(cell: Outcome) -> tuple[int, int]:
    """Ranks, and threads of each: one rank with all threads of the job unless the variant or the workload says more."""
    whole = cell.case.job.plan.job
    ranks = cell.variant.ranks or (whole.ranks_per_node if cell.workload.ranks > 1 else 1)
    return ranks, cell.variant.threads or max(1, whole.ranks_per_node * whole.threads_per_rank // ranks)


def _rate(workload: BenchWorkload, results: list[Result]) -> Rate | str:
    rates = [each.rate for each in results]
    counts: set[Any] = {each.parameters for each in results}
    if workload.network is not None and counts != {workload.record.parameters}:
        return f"the program built another network: {counts} parameters, not {workload.record.parameters}"
    on_devices = [each.device_memory for each in results if each.device_memory is not None]
    return Rate(
        sum(rates) if workload.adds else min(rates),
        max(each.overhead for each in results),
        results[0].version,
        sum(each.memory for each in results) / 1e9,
        results[0].library or "",
        sum(on_devices) / 1e9 if on_devices else None,
    )


def _failure(ended: StartResult, results: int, ranks: int, timeout_s: float) -> str:
    if ended.status is None:
        return f"it was ended after {timeout_s:g} s"
    said = [line.strip() for line in ended.lines if line.strip()]
    last = " | ".join(said[-_LAST_LINES:]) or "nothing"
    if ended.status == 0:
        return f"{results} of {counted(ranks, 'rank')} said how fast they were; the last lines: {last}"
    return f"it ended with {status_text(ended.status)}: {last}"
