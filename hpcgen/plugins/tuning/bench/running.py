"""Variants of images run round by round, each round in another order; what becomes of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Annotated, Any

import msgspec

from hpcgen.core.errors import HpcgenError, PolicyError
from hpcgen.core.model.fields import Text, Version
from hpcgen.core.support.units import counted, some
from hpcgen.launch.start import start
from hpcgen.plugins.tuning.bench.pressure import BUSY
from hpcgen.plugins.tuning.bench.program import BenchRefusal, RankResult, asked, command_of, read_results
from hpcgen.plugins.tuning.bench.variants import Variant, of_memory
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload, OwnProgram
from hpcgen.plugins.tuning.measurements.records import Metric, Positive
from hpcgen.running.here import status_text
from hpcgen.running.image_job import ImageJob
from hpcgen.running.python_inside import FoundPython
from hpcgen.running.verify.several import fixed_launcher
from hpcgen.running.verify.starts import StartResult, start_job, with_layout

SECONDS = 2.0
"""How long steps are timed in each start."""

TIMEOUT_S = 900.0
ROUNDS = 5
_LAST_LINES = 3
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax", "mpi4py": "mpi4py", "numpy": "numpy"}
"""The module of Python by which a framework is found where no block tells of it."""

_NO_BLOCK = frozenset({"numpy"})
"""NumPy comes with many blocks, and the program sees for itself."""


MEMORY: tuple[Metric, ...] = ("memory_gb", "device_memory_gb")
"""What of a :class:`Rate` is memory."""


class BenchCase(msgspec.Struct, frozen=True):
    """An image that is measured, or a Python without one.

    image: its name for people.
    job: on the nodes that are measured.
    content: the hash of its plan; of an image that hpcgen did not build its own, "" where not all of it can be read.
    python: that runs the programs where no block tells what is there: in such an image, or without one.
    cache: a folder for what graph compilers make, from the folder of the start; with "" each start compiles anew.
    command: what is started in the place of a program of the user's, as without a container.
    """

    image: str
    job: ImageJob
    content: str = ""
    python: FoundPython | None = None
    cache: str = ""
    command: tuple[str, ...] = ()

    @property
    def foreign(self) -> bool:
        """Whether hpcgen did not build it."""
        return self.python is not None and not self.job.plain

    @property
    def engine(self) -> str:
        """What starts it, ``none`` without a container."""
        return "none" if self.job.plain else self.job.plan.engine

    @property
    def identity(self) -> str:
        """What tells it from others, as far as that is known."""
        return self.content or (self.image if self.python is None else f"{self.image}: {self.python}")

    @property
    def unknown(self) -> list[str]:
        """What rows say of images of hpcgen's, and cannot of this one, by the fields of their ``software``."""
        return (
            []
            if self.python is None
            else ["install", "blocks", *(["content"] if self.foreign and not self.content else [])]
        )

    def has(self, framework: str) -> bool:
        """Whether it has a framework, as far as that is known without a start."""
        if self.python is not None:
            return MODULES[framework] in self.python.modules
        return framework in _NO_BLOCK or self.job.plan.block(framework) is not None


Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Rate(msgspec.Struct, frozen=True):
    """What one start measured over all its ranks.

    ``value`` in the unit of the workload's metric; ``overhead``: seconds that the first step took more, of the slowest
    rank; ``version`` of the framework; ``memory_gb``: what all ranks of the fullest node had, each at its peak;
    ``library``: the allocator that was loaded; ``device_memory_gb``: the same of what their tensors took on GPUs, where
    the framework tells it; ``cpu_seconds``: of the processors for a step of all ranks; ``waited``: the share of the
    time just before in which other programs waited for CPUs, and ``load`` the machine's, where these are known;
    ``readers``: what reads variables there, such as ``libgomp``; None where that is not known.
    """

    value: Positive
    overhead: Seconds
    version: Version | None = None
    memory_gb: Positive | None = None
    library: Text = ""
    device_memory_gb: Positive | None = None
    readers: list[Text] | None = None
    cpu_seconds: Seconds | None = None
    waited: Seconds | None = None
    load: Seconds | None = None


class BenchOutcome(msgspec.Struct):
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


OnBegin = Callable[[BenchOutcome, int], None]
IsWanted = Callable[[BenchWorkload, int], bool]
OnRound = Callable[[BenchWorkload, int], None]
OnEnd = Callable[[BenchOutcome], None]
Starter = Callable[[ImageJob, float], StartResult]
Look = Callable[[], float | None]


def outcomes_for(
    cases: Sequence[BenchCase], workloads: Sequence[BenchWorkload], variants: Sequence[Variant]
) -> list[BenchOutcome]:
    """What there is to measure, by workload; of each the first variant of the first image comes first."""
    return [
        BenchOutcome(case, workload, variant, variant.framework or framework_for(workload, case))
        for workload in workloads
        for case in cases
        for variant in variants
    ]


def run_rounds(
    outcomes: Sequence[BenchOutcome],
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    timeout_s: float = TIMEOUT_S,
    on_begin: OnBegin = lambda outcome, number: None,
    on_end: OnEnd = lambda outcome: None,
    is_wanted: IsWanted = lambda workload, number: True,
    on_round: OnRound = lambda workload, number: None,
    starter: Starter = start_job,
    look: Look = lambda: None,
    repeat: int = 0,
) -> None:
    """Run every variant of every image once in each round, workload by workload, and note the rates.

    A round begins with the variant after the one that the last round began with, so that none always runs first. What
    cannot run is not tried again. After an interrupt the outcomes have what is known so far.

    seconds: how long steps are timed in each start.
    timeout_s: seconds for each start, with all that is imported and compiled in it.
    on_begin: called with what runs next, and the number of the round, from 0.
    on_end: called after each start.
    is_wanted: whether a round is to be run here, asked just before it would begin.
    on_round: called after each round that was run.
    starter: starts a job here and gives what it printed.
    look: tells before each start in which share of the time others wait for CPUs.
    repeat: so many rounds of a workload, at most, are run once more because others waited in them; the quieter counts.
    """

    def run(cells: Sequence[BenchOutcome], number: int) -> None:
        first = number % len(cells)
        for cell in [*cells[first:], *cells[:first]]:
            if cell.reason:
                continue
            on_begin(cell, number)
            waited, load = look(), os.getloadavg()[0]
            rate = measure(cell, seconds, timeout_s, starter)
            if isinstance(rate, Rate):
                cell.rates[number] = msgspec.structs.replace(rate, waited=waited, load=round(load, 2))
            else:
                cell.reason = rate
            on_end(cell)

    for _, group in groupby(outcomes, key=lambda each: each.workload.name):
        cells = list(group)
        for number in range(rounds):
            if is_wanted(cells[0].workload, number):
                run(cells, number)
                on_round(cells[0].workload, number)
        for number in busy_rounds(cells)[:repeat]:
            before = [dict(cell.rates) for cell in cells]
            waited = waited_in(cells, number)
            run(cells, number)
            if waited_in(cells, number) >= waited:
                for cell, rates in zip(cells, before, strict=True):
                    cell.rates = rates


def waited_in(cells: Sequence[BenchOutcome], number: int) -> float:
    """The largest share of the time in which others waited for CPUs before a start of this round."""
    return max((cell.rates[number].waited or 0 for cell in cells if number in cell.rates), default=0.0)


def busy_rounds(cells: Sequence[BenchOutcome]) -> list[int]:
    """The rounds of a workload that others disturbed, those first in which they waited most."""
    numbers = {number for cell in cells for number in cell.rates}
    found = [number for number in numbers if waited_in(cells, number) >= BUSY]
    return sorted(found, key=lambda number: -waited_in(cells, number))


def run_variants(
    cases: Sequence[BenchCase], workloads: Sequence[BenchWorkload], variants: Sequence[Variant], **how: Any
) -> list[BenchOutcome]:
    """:func:`outcomes_for` and :func:`run_rounds`, whose parameters ``how`` are, in one."""
    outcomes = outcomes_for(cases, workloads, variants)
    run_rounds(outcomes, **how)
    return outcomes


def framework_for(workload: BenchWorkload, case: BenchCase) -> str:
    """The first framework of an image that runs a workload; "" without one."""
    return next((name for name in workload.frameworks if case.has(name)), "")


def measure(cell: BenchOutcome, seconds: float, timeout_s: float, starter: Starter = start_job) -> Rate | str:
    """Start it once: the rate, or why there is none."""
    if why := _unfit(cell):
        return why
    try:
        job = job_of(cell, seconds)
        ended = starter(job, timeout_s)
        if cell.workload.own is not None:
            return _own_rate(cell.workload.own, ended, timeout_s)
        said = read_results(ended.lines)
    except HpcgenError as refused:
        return "; ".join(each.message for each in refused.problems)
    refusals = [each.cannot for each in said if isinstance(each, BenchRefusal)]
    results = [each for each in said if isinstance(each, RankResult)]
    if refusals:
        return refusals[0]
    ranks = job.plan.job.ranks
    if ended.status != 0 or len(results) != ranks:
        return _failure(ended, len(results), ranks, timeout_s)
    return _rate(cell.workload, results, job.plan.job.nodes)


def _own_rate(program: OwnProgram, ended: StartResult, timeout_s: float) -> Rate | str:
    """Of a program of the user's."""
    from hpcgen.plugins.tuning.bench.own_program import figure_in

    if ended.status != 0:
        return _failure(ended, 0, 0, timeout_s)
    figure = figure_in(program, ended.lines) if program.figure else ended.seconds
    if isinstance(figure, str):
        return figure
    return Rate(1 / figure if program.lower else figure, 0.0)


def _unfit(cell: BenchOutcome) -> str:
    """What is known without a start."""
    if cell.workload.own is not None:
        from hpcgen.plugins.tuning.bench.own_program import untold

        return untold(cell.variant)
    names = cell.workload.frameworks
    plan = cell.case.job.plan
    python = cell.case.python
    if cell.framework not in names:
        wanted = cell.framework or (f"{python}" if python is not None else "the image's blocks")
        return f"there is no program for it with {wanted}, only with {', '.join(names)}"
    if not cell.case.has(cell.framework):
        return f"{python} has no {MODULES[cell.framework]}" if python else f"the image has no {cell.framework}"
    ranks = layout_of(cell)[0] * plan.job.nodes
    if python is not None and max(ranks, cell.workload.ranks) > 1:
        where = "without a container" if cell.case.job.plain else "in an image that hpcgen did not build"
        return f"several ranks cannot be started {where}"
    if ranks < cell.workload.ranks:
        return f"it needs {counted(cell.workload.ranks, 'rank')}: --layout {cell.workload.ranks}x1"
    if cell.variant.batch and cell.workload.network is None:
        return "it has no batch"
    return ""


def job_of(cell: BenchOutcome, seconds: float) -> ImageJob:
    """The image's job with the program as its command, in the variant's layout.

    PolicyError: it cannot be started so, as several ranks of a stack without MPI.
    """
    variant, (ranks, threads) = cell.variant, layout_of(cell)
    whole = cell.case.job
    job = with_layout(whole, [], ranks, variant.environment, nodes=whole.plan.job.nodes, threads=threads)
    replace = msgspec.structs.replace
    if cell.workload.own is not None:
        command = list(cell.case.command or cell.workload.own.words)
    else:
        request = asked(cell.workload, variant, job.plan.job, seconds, cell.case.cache)
        command = command_of(cell.framework, job.plan.job, request, cell.case.python)
    if taken := taken_away(cell):
        # An empty value would be a threshold of 0.
        command = ["env", *(word for name in taken for word in ("-u", name)), *command]
    # A variable of the stack, which a stranger's has in the container alone, gives way to the variant's.
    inside = {name: value for name, value in job.inside.items() if name not in variant.environment}
    job = replace(job, plan=replace(job.plan, job=replace(job.plan.job, command=command)), inside=inside)
    start(job.plan, job.environment)
    if fixed := fixed_launcher(whole, job):
        raise PolicyError(
            f"{fixed} always starts all ranks of the allocation",
            remedy="request exactly the ranks to be measured, or omit options that change their number",
        )
    return job


def image_variables(case: BenchCase) -> dict[str, str]:
    """The variables of an image, its site and its stack, whatever varies."""
    plan = case.job.plan
    of_site = plan.site.environment_of(plan.partition)
    return {**case.job.environment, **of_site, **plan.stack.run.environment, **case.job.inside}


def taken_away(cell: BenchOutcome) -> list[str]:
    """Variables of the image that the program does not see in this variant."""
    if cell.variant.memory != "plain":
        return []
    known = image_variables(cell.case)
    return [name for name in of_memory(known) if name not in cell.variant.environment]


def layout_of(cell: BenchOutcome) -> tuple[int, int]:
    """Ranks of a node, and threads of each: one with all of the job's unless the variant or the workload says more."""
    whole = cell.case.job.plan.job
    several = cell.workload.ranks > 1 or cell.workload.own is not None
    ranks = cell.variant.ranks or (whole.ranks_per_node if several else 1)
    return ranks, cell.variant.threads or max(1, whole.ranks_per_node * whole.threads_per_rank // ranks)


def _rate(workload: BenchWorkload, results: list[RankResult], nodes: int) -> Rate | str:
    rates = [each.rate for each in results]
    counts: set[Any] = {each.parameters for each in results}
    if workload.network is not None and counts != {workload.record.parameters}:
        return f"the program built another network: {counts} parameters, not {workload.record.parameters}"
    # On one node a container may have a different name for each rank.
    by_node: dict[str, list[RankResult]] = {}
    for each in results:
        by_node.setdefault(each.node if nodes > 1 else "", []).append(each)
    if len(by_node) != nodes:
        where = some(sorted(by_node))
        return f"{counted(len(results), 'rank')} ran on {where}, not on {counted(nodes, 'node')}"
    on_devices = max(sum(each.device_memory or 0 for each in there) for there in by_node.values())
    return Rate(
        sum(rates) if workload.adds else min(rates),
        max(each.overhead for each in results),
        results[0].version,
        max(sum(each.memory for each in there) for there in by_node.values()) / 1e9,
        results[0].library or "",
        on_devices / 1e9 if on_devices else None,
        results[0].readers,
        sum(each.cpu_seconds or 0 for each in results) or None,
    )


def _failure(ended: StartResult, results: int, ranks: int, timeout_s: float) -> str:
    if ended.status is None:
        return f"it was ended after {timeout_s:g} s"
    said = [line.strip() for line in ended.lines if line.strip()]
    last = " | ".join(said[-_LAST_LINES:]) or "nothing"
    if ended.status == 0:
        return f"{results} of {counted(ranks, 'rank')} said how fast they were; the last lines: {last}"
    return f"it ended with {status_text(ended.status)}: {last}"
