"""Which queue takes a job: by nodes and time, a queue for trying things out last. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import Problem, did_you_mean
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.site import Queue, Site
from hpcgen.core.support.units import counted, parse_walltime, walltime_text


class QueueChoice(msgspec.Struct, frozen=True):
    """Where a job goes: the queue's name, empty where none is named, the time that it asks for, and why."""

    queue: str
    seconds: int
    reasons: list[JobReason]
    problems: list[Problem]


def place(
    site: Site, partition_name: str, nodes: int, request: JobRequest, recorded_seconds: int | None = None
) -> QueueChoice:
    """The queue of a job and its time.

    A time that nobody asked for is that of an image's record or the site's default, or the most that the queue takes
    where that is less. InputError where the time that was asked for is none.
    """
    asked = request.walltime is not None
    if request.walltime is not None:
        seconds, why = parse_walltime(request.walltime), JobReason(field="walltime_s", rule="asked")
    elif recorded_seconds is not None:
        seconds, why = recorded_seconds, JobReason(field="walltime_s", rule="recorded")
    else:
        seconds = parse_walltime(site.scheduler.default_time, "scheduler.default_time")
        why = JobReason(field="walltime_s", rule="site default", by=site.name)
    queues = site.partitions[partition_name].queues
    chosen: Queue | None = None
    reason: JobReason | None = None
    problem: Problem | None = None
    if request.queue is not None:
        chosen, problem = _asked(site, partition_name, request.queue)
        reason = JobReason(field="queue", rule="asked") if problem is None else None
        if chosen is not None and (wrong := misfit(chosen, nodes, _shortened(seconds, asked, chosen))):
            chosen, reason = None, None
            problem = Problem(f"queue {request.queue} does not take this job: {wrong}", "--queue", _others(queues))
    elif queues:
        for_trying_last = sorted(queues, key=lambda queue: queue.debug)
        fits = (q for q in for_trying_last if not misfit(q, nodes, _shortened(seconds, asked, q)))
        chosen = next(fits, None)
        if chosen is None:
            problem = _none(queues, partition_name, nodes, seconds)
        else:
            job = f"{counted(nodes, 'node')} for {walltime_text(_shortened(seconds, asked, chosen))}"
            reason = JobReason(field="queue", rule="first queue", by=job, note=limits(chosen))
    if chosen is not None and _shortened(seconds, asked, chosen) < seconds:
        seconds = _shortened(seconds, asked, chosen)
        why = JobReason(field="walltime_s", rule="queue limit", by=chosen.name)
    name = chosen.name if chosen is not None else (request.queue or "") if reason is not None else ""
    reasons = [why, *([reason] if reason is not None else [])]
    return QueueChoice(name, seconds, reasons, [problem] if problem is not None else [])


def misfit(queue: Queue, nodes: int, seconds: int) -> str:
    """Why a queue does not take so many nodes for so long; empty if it does, as far as its limits are known."""
    if nodes < queue.min_nodes or (queue.max_nodes is not None and nodes > queue.max_nodes):
        return f"it takes {_nodes(queue)}, not {nodes}"
    if queue.max_time is not None and seconds > parse_walltime(queue.max_time):
        return f"it takes jobs of up to {queue.max_time}, not {walltime_text(seconds)}"
    if queue.min_time is not None and seconds < parse_walltime(queue.min_time):
        return f"it takes jobs of {queue.min_time} and more, not {walltime_text(seconds)}"
    return ""


def limits(queue: Queue) -> str:
    """What a queue takes, and that it is not known where it is not."""
    shortest = f"from {queue.min_time} " if queue.min_time is not None else ""
    longest = f"{shortest}up to {queue.max_time}" if queue.max_time is not None else f"{shortest}time limit not known"
    return f"{_nodes(queue)}, {longest}{', for trying things out' if queue.debug else ''}"


def _nodes(queue: Queue) -> str:
    if queue.max_nodes is None:
        return f"{queue.min_nodes} or more nodes" if queue.min_nodes > 1 else "any number of nodes as far as is known"
    return f"{queue.min_nodes} to {counted(queue.max_nodes, 'node')}" if queue.max_nodes > 1 else "1 node"


def _shortened(seconds: int, asked: bool, queue: Queue) -> int:
    if asked or queue.max_time is None:
        return seconds
    return min(seconds, parse_walltime(queue.max_time))


def _none(queues: Sequence[Queue], partition_name: str, nodes: int, seconds: int) -> Problem:
    message = f"no queue of {partition_name} takes {counted(nodes, 'node')} for {walltime_text(seconds)}"
    return Problem(message, expected=_others(queues))


def _others(queues: Sequence[Queue]) -> str:
    return "; ".join(f"{queue.name}: {limits(queue)}" for queue in queues)


def _asked(site: Site, partition_name: str, name: str) -> tuple[Queue | None, Problem | None]:
    """The queue of this name, None where the profile knows of none at all; or what is wrong."""
    queues = site.partitions[partition_name].queues
    if not scheduler_for(site.scheduler).takes_jobs:
        message = f"{site.name} has no batch system, so no queue {name!r}"
        return None, Problem(message, "--queue", remedy="leave --queue out")
    found = next((queue for queue in queues if queue.name == name), None)
    if found is None and queues:
        remedy = did_you_mean(name, [queue.name for queue in queues])
        return None, Problem(f"{partition_name} has no queue {name!r}", "--queue", remedy=remedy)
    return found, None
