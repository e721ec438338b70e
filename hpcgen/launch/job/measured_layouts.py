"""Which of a site's recommended layouts a job takes, and why not another. Pure."""

from __future__ import annotations

import msgspec

from hpcgen.core.model.batch import Queue
from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.site import Layout, Partition, Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.units import counted, number
from hpcgen.launch.job.queues import limits, misfit


class Considered(msgspec.Struct, frozen=True):
    """One layout of the profile; ``why`` it was taken or not; ``for_nodes``: of several, by its number of nodes."""

    layout: Layout
    taken: bool
    why: str
    for_nodes: bool = False


def consider(
    site: Site, partition_name: str, stack: Stack, request: JobRequest, memory: float | None
) -> list[Considered]:
    """Every layout of the site, in the profile's order; at most one is taken.

    Of those that agree with what was asked and have memory for their ranks: with a number of nodes asked for, the
    one for the most nodes that are not more, else the one for the fewest; of equal ones a measured one before one
    that nobody measured. Without such a number the first.
    """
    unfit = [_misfit(site, partition_name, stack, request, memory, layout) for layout in site.layouts]
    fitting = [index for index, why in enumerate(unfit) if not why]
    nodes = request.nodes
    if nodes is None:
        best = min(fitting, default=None)
    else:
        best = min(fitting, key=lambda index: _distance(nodes, site.layouts[index]), default=None)
    result = []
    for index, layout in enumerate(site.layouts):
        if index == best:
            why = _why_taken(nodes, layout, len(fitting))
        else:
            why = unfit[index] or _why_not(nodes, layout, site.layouts[best or 0])
        for_nodes = index == best and nodes is not None and len(fitting) > 1
        result.append(Considered(layout, index == best, why, for_nodes))
    return result


def _misfit(
    site: Site, partition_name: str, stack: Stack, request: JobRequest, memory: float | None, layout: Layout
) -> str:
    """Why a layout cannot be taken; "" if it can."""
    if layout.partition != partition_name:
        return f"it is for {layout.partition}"
    if not stack.run.mpi:
        return f"stack {stack.name} runs without MPI"
    if request.ranks_per_node not in (None, layout.ranks_per_node):
        return f"{counted(request.ranks_per_node or 0, 'rank')} per node requested"
    if request.threads_per_rank not in (None, layout.threads_per_rank):
        return f"{counted(request.threads_per_rank or 0, 'thread')} per rank requested"
    if request.ranks_per_node is None and stack.run.ranks_per_node not in (None, layout.ranks_per_node):
        return f"stack {stack.name} requires {counted(stack.run.ranks_per_node or 0, 'rank')} per node"
    usable = usable_gb(site.partitions[partition_name])
    if memory is not None and memory * layout.ranks_per_node > usable:
        needed = f"{layout.ranks_per_node} × {number(memory)} GB = {number(memory * layout.ranks_per_node)} GB"
        return f"{needed} exceeds the {number(usable)} GB that a job may use"
    return ""


def _distance(nodes: int, layout: Layout) -> tuple[bool, int, bool]:
    return layout.nodes > nodes, abs(layout.nodes - nodes), not layout.measured


def _why_taken(nodes: int | None, layout: Layout, fitting: int) -> str:
    if fitting == 1:
        return "the only one that fits"
    if nodes is None:
        return "the first that fits"
    if layout.nodes == nodes:
        return f"it is for {counted(nodes, 'node')}"
    side = "the most nodes up to" if layout.nodes < nodes else "the fewest nodes above"
    return f"it is for {side} {nodes}"


def _why_not(nodes: int | None, layout: Layout, best: Layout) -> str:
    if nodes is None:
        return "another that fits comes before it"
    if layout.nodes == best.nodes:
        return "another for as many nodes " + (
            "is measured" if best.measured and not layout.measured else "comes before"
        )
    return f"the one for {counted(best.nodes, 'node')} is closer to {nodes}"


def explain(site: Site, partition_name: str, stack: Stack, job: Job, request: JobRequest) -> list[str]:
    """Lines that say how a job came to its numbers: layouts, threads, memory, queue."""
    partition = site.partitions[partition_name]
    lines = [f"layouts of {site.name}:"]
    if not site.layouts:
        lines = [f"layouts of {site.name}: none in the profile"]
    memory = request.memory_per_rank_gb or stack.run.memory_per_rank_gb
    for each in consider(site, partition_name, stack, request, memory):
        layout = each.layout
        shape = f"{layout.partition}: {layout.ranks_per_node} × {layout.threads_per_rank} on "
        measured = f" (measured: {layout.measured})" if layout.measured else " (not measured)"
        verdict = "taken" if each.taken else "not taken"
        lines.append(f"  {shape}{counted(layout.nodes, 'node')}: {verdict}: {each.why}{measured}")
    cores = partition.cpu.for_jobs
    hardware = cores * partition.cpu.threads_per_core
    used = job.ranks_per_node * job.threads_per_rank
    lines.append(
        f"threads: {job.ranks_per_node} × {job.threads_per_rank} = {used} on {counted(cores, 'core')}"
        f" ({hardware} hardware threads) of a node"
    )
    lines.append(f"memory: {memory_text(partition, job)}")
    if partition.queues:
        lines.append(f"queues of {partition_name}:")
        lines += [f"  {queue.name}, {limits(queue)}: {_queue_verdict(queue, job)}" for queue in partition.queues]
    return lines


def _queue_verdict(queue: Queue, job: Job) -> str:
    if queue.name == job.queue:
        return "taken"
    return misfit(queue, job.nodes, job.walltime_s) or "would do too"


def layout_text(job: Job) -> str:
    """``2 nodes × 4 ranks × 12 threads``."""
    ranks = f"{counted(job.ranks_per_node, 'rank')} × {counted(job.threads_per_rank, 'thread')}"
    return f"{counted(job.nodes, 'node')} × {ranks}"


def memory_text(partition: Partition, job: Job) -> str:
    """What the ranks of a node need of what a job may use."""
    usable = f"{usable_gb(partition):g}"
    if job.memory_per_rank_gb is None:
        return f"a job may use {usable} GB of a node"
    used = job.memory_per_rank_gb * job.ranks_per_node
    ranks = f"{job.ranks_per_node} × {job.memory_per_rank_gb:g} GB"
    return f"{ranks} = {used:g} GB of the {usable} GB that a job may use of a node"


def usable_gb(partition: Partition) -> float:
    """Memory of a node that a job may use, in GB."""
    return partition.memory.usable_gb or partition.memory.total_gb
