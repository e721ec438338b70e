"""Where a job does not fit the machine: changes of what was asked with which it does. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations, islice, product
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, PolicyError, Problem, Remedy
from hpcgen.core.model.batch import Queue
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.site import Partition, Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.units import parse_walltime, walltime_text
from hpcgen.launch.job.layout import lay_out, memory_problem
from hpcgen.launch.job.measured_layouts import usable_gb

OPTIONS = {
    "threads_per_rank": "--threads",
    "walltime": "--time",
    "queue": "--queue",
    "gpus_per_node": "--gpus",
    "ranks_per_node": "--ranks-per-node",
    "nodes": "--nodes",
    "partition": "--partition",
}
"""What may be changed, in the order in which it is tried, and the option that says it."""
MOST_CHANGES = 3
TRIED = 4000
"""So many jobs are laid out at most for one error."""
SHOWN = 2


class JobChange(msgspec.Struct, frozen=True):
    """What is asked instead: ``values`` by the field, None for an option that is left out."""

    values: dict[str, Any]
    request: JobRequest
    partition: str

    def __str__(self) -> str:
        said = " ".join(f"{OPTIONS[name]} {value}" for name, value in self.values.items() if value is not None)
        omitted = " and ".join(OPTIONS[name] for name, value in self.values.items() if value is None)
        if not said:
            return f"leave {omitted} out"
        return f"try {said}" + (f" without {omitted}" if omitted else "")

    def as_remedy(self) -> Remedy:
        """The same as data."""
        job = {name: value for name, value in self.values.items() if name != "partition"}
        return Remedy(job=job, partition=self.values.get("partition"), text=str(self))


def changes(site: Site, partition: str, stack: Stack, request: JobRequest) -> Iterator[JobChange]:
    """Requests with which the job fits the machine: the fewest changes first, of each option the nearest value."""
    every = dict(_candidates(site, partition, stack, request))
    sets = (names for size in range(1, MOST_CHANGES + 1) for names in combinations(every, size))
    left = TRIED
    for names in sets:
        for values in islice(product(*(every[name] for name in names)), left):
            left -= 1
            change = _changed(dict(zip(names, values, strict=True)), request, partition)
            if _fits(site, change, stack):
                yield change


def refusal(problems: Sequence[Problem], found: Iterable[JobChange], works: Callable[[JobChange], bool]) -> PolicyError:
    """The error of a job that does not fit; the last of its problems has what helps against all.

    ``works``: whether the whole question has an answer with a change; what has none is not told.
    """
    told: list[JobChange] = []
    for change in found:
        if len(told) == SHOWN or (told and len(change.values) > len(told[0].values)):
            break
        if all(change.values.keys() != each.values.keys() for each in told) and works(change):
            told.append(change)
    if not told:
        return PolicyError(problems)
    text, own = " or ".join(map(str, told)).replace(" or try ", " or "), problems[-1].remedy
    if own.endswith("?"):
        # The name that was meant is the best change where it works.
        text = text if str(told[0].values.get("queue")) in own else f"{own} or {text}"
    elif own:
        text = f"{text}, or {own}"
    error = PolicyError([*problems[:-1], msgspec.structs.replace(problems[-1], remedy=text)])
    error.remedies = tuple(each.as_remedy() for each in told)
    return error


def _candidates(site: Site, name: str, stack: Stack, request: JobRequest) -> Iterator[tuple[str, list[Any]]]:
    """Other values of each option, the nearest to what was asked first; no option without any."""
    job, partition = lay_out(site, name, stack, request)[0], site.partitions[name]
    queues = partition.queues
    threads = [partition.cpu.for_jobs // job.ranks_per_node]
    yield "threads_per_rank", _others(job.threads_per_rank, threads, request.threads_per_rank)
    bins = [each for queue in queues for each in queue.times]
    said = [time for queue in queues for time in (queue.max_time, queue.min_time)] + [each.max_time for each in bins]
    times = [parse_walltime(time) for time in said if time is not None]
    near = sorted((time for time in times if time != job.walltime_s), key=lambda time: abs(time - job.walltime_s))
    yield "walltime", [walltime_text(time) for time in dict.fromkeys(near)]
    yield "queue", _queues(queues, request.queue) if request.queue is not None else []
    there = partition.gpu.count if partition.gpu is not None else 0
    # To ask for GPUs that nothing uses silences the error, and is no remedy.
    gpus = request.gpus_per_node
    yield "gpus_per_node", _others(gpus, [there], gpus) if gpus is not None else []
    ranks = [partition.cpu.for_jobs // (request.threads_per_rank or 1), 1]
    if job.memory_per_rank_gb is not None:
        ranks.append(int(usable_gb(partition) // job.memory_per_rank_gb))
    yield "ranks_per_node", _others(job.ranks_per_node, ranks, request.ranks_per_node)
    limits = [queue.most_nodes for queue in queues] + [queue.min_nodes for queue in queues]
    # More nodes may have more time.
    limits += [number for each in bins for number in (each.max_nodes, each.max_nodes + 1)]
    nodes = [count for count in (partition.nodes, *limits, 1) if count is not None]
    yield "nodes", _others(job.nodes, nodes, request.nodes)
    yield "partition", [other for other, each in site.partitions.items() if other != name and _alike(each, partition)]


def _queues(queues: Sequence[Queue], asked: str) -> list[str | None]:
    """The others: what may be meant first, what is for trying things out late, none at last."""
    named = [queue.name for queue in sorted(queues, key=lambda queue: queue.debug) if queue.name != asked]
    return [*dict.fromkeys([*get_close_matches(asked, named), *named]), None]


def _alike(one: Partition, other: Partition) -> bool:
    """Whether the same software is for both: nobody who asked for GPUs is sent where there are none."""
    vendors = [each.gpu.vendor if each.gpu is not None else "" for each in (one, other)]
    return vendors[0] == vendors[1]


def _others(now: int, values: Iterable[int], asked: int | None) -> list[int | None]:
    """The values without the present one, the nearest first; at last none at all, where something was asked for."""
    near = sorted({value for value in values if value > 0 and value != now}, key=lambda value: abs(value - now))
    return [*near, *([None] if asked is not None else [])]


def _changed(values: dict[str, Any], request: JobRequest, partition: str) -> JobChange:
    rest = {name: value for name, value in values.items() if name != "partition"}
    return JobChange(values, msgspec.structs.replace(request, **rest), values.get("partition", partition))


def _fits(site: Site, change: JobChange, stack: Stack) -> bool:
    try:
        job, problems = lay_out(site, change.partition, stack, change.request)
    except InputError:
        return False
    return not problems and memory_problem(change.partition, site.partitions[change.partition], job) is None
