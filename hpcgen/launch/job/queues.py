"""Which queue takes a job: by nodes and time, a queue for trying things out last. Pure."""

from __future__ import annotations

import msgspec

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import Problem, did_you_mean
from hpcgen.core.model.batch import Queue
from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.site import Site
from hpcgen.core.support.units import counted, number, parse_walltime, walltime_text


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
        if chosen is not None and (wrong := misfit(chosen, nodes, _shortened(seconds, asked, chosen, nodes))):
            chosen, reason = None, None
            message = f"queue {request.queue} does not take this job: {wrong}{_as_far_as_known(site, partition_name)}"
            problem = Problem(message, "--queue", _others(site, partition_name))
    elif queues:
        for_trying_last = sorted(queues, key=lambda queue: queue.debug)
        fits = (q for q in for_trying_last if not misfit(q, nodes, _shortened(seconds, asked, q, nodes)))
        chosen = next(fits, None)
        if chosen is None:
            problem = _none(site, partition_name, nodes, seconds)
        else:
            job = f"{counted(nodes, 'node')} for {walltime_text(_shortened(seconds, asked, chosen, nodes))}"
            reason = JobReason(field="queue", rule="first queue", by=job, note=limits(chosen))
    if chosen is not None and _shortened(seconds, asked, chosen, nodes) < seconds:
        seconds = _shortened(seconds, asked, chosen, nodes)
        why = JobReason(field="walltime_s", rule="queue limit", by=chosen.name)
    name = chosen.name if chosen is not None else (request.queue or "") if reason is not None else ""
    reasons = [why, *([reason] if reason is not None else [])]
    return QueueChoice(name, seconds, reasons, [problem] if problem is not None else [])


def misfit(queue: Queue, nodes: int, seconds: int) -> str:
    """Why a queue does not take so many nodes for so long; empty if it does, as far as its limits are known."""
    if nodes < queue.min_nodes or (queue.most_nodes is not None and nodes > queue.most_nodes):
        return f"it takes {_nodes(queue)}, not {nodes}"
    longest = queue.time_limit(nodes)
    if longest is not None and seconds > parse_walltime(longest):
        of_nodes = f" of {counted(nodes, 'node')}" if queue.times else ""
        return f"it takes jobs{of_nodes} of up to {longest}, not {walltime_text(seconds)}"
    if queue.min_time is not None and seconds < parse_walltime(queue.min_time):
        return f"it takes jobs of {queue.min_time} and more, not {walltime_text(seconds)}"
    return ""


def unknown_limits(site: Site, partition_name: str, job: Job, request: JobRequest) -> list[Finding]:
    """That nobody knows whether the site takes what was asked for, and who does know."""
    batch, partition = scheduler_for(site.scheduler), site.partitions[partition_name]
    queue = next((each for each in partition.queues if each.name == job.queue), None)
    where = f"the queue {job.queue}" if job.queue else f"jobs on {partition_name}"
    unknown = []
    if request.walltime is not None and batch.takes_jobs and (queue is None or queue.time_limit(job.nodes) is None):
        unknown.append((f"{walltime_text(job.walltime_s)} of time", "max_time"))
    # Without any queue the profile is one for many systems, which says so.
    known = queue is None or queue.most_nodes or partition.nodes
    if request.nodes is not None and job.nodes > 1 and not known:
        unknown.append((counted(job.nodes, "node"), "max_nodes"))
    asked = (request.memory_per_rank_gb or 0) * job.ranks_per_node
    if partition.memory.usable_gb is None and asked > LEFT_TO_JOBS * partition.memory.total_gb:
        unknown.append((f"{number(asked)} GB of a node's {number(partition.memory.total_gb)}", "usable_gb"))
    own = queue is not None and queue.by_account and (request.walltime or request.nodes)
    if not unknown and not own:
        return []
    ask = [text.format(job.queue).strip() for text in (batch.limits_of, batch.account_limits if own else "") if text]
    link = f", or see {site.links[0]}" if site.links else ""
    asking = (f"ask {' and '.join(f'`{each}`' for each in ask)}{link}" if ask else f"ask the site{link}").strip()
    if not unknown:
        message = f"{where} takes what the account may have, which the profile of {site.name} cannot know"
        return [Finding(name="limit", severity="warning", message=message, remedy=asking)]
    what, fields = (" and ".join(parts) for parts in zip(*unknown, strict=True))
    message = f"the profile of {site.name} does not know whether {where} may have {what}"
    return [Finding(name="limit", severity="warning", message=message, remedy=f"{asking}, and add {fields} to it")]


LEFT_TO_JOBS = 0.9
"""The part of a node's memory that every system leaves to jobs, as far as was seen."""


def limits(queue: Queue) -> str:
    """What a queue takes, and that it is not known where it is not."""
    shortest = f"from {queue.min_time} " if queue.min_time is not None else ""
    times = [f"{each.max_time} on up to {counted(each.max_nodes, 'node')}" for each in queue.times]
    if queue.max_time is not None:
        times.append(f"{queue.max_time} on more" if times else queue.max_time)
    longest = f"{shortest}up to {', '.join(times)}" if times else f"{shortest}time limit not known"
    own = ", or what the account has" if queue.by_account else ""
    return f"{_nodes(queue)}, {longest}{own}{', for trying things out' if queue.debug else ''}"


def _nodes(queue: Queue) -> str:
    most = queue.most_nodes
    if most is None:
        return f"{queue.min_nodes} or more nodes" if queue.min_nodes > 1 else "any number of nodes (no limit known)"
    return f"{queue.min_nodes} to {counted(most, 'node')}" if most > 1 else "1 node"


def _shortened(seconds: int, asked: bool, queue: Queue, nodes: int) -> int:
    longest = queue.time_limit(nodes)
    return seconds if asked or longest is None else min(seconds, parse_walltime(longest))


def _none(site: Site, partition_name: str, nodes: int, seconds: int) -> Problem:
    message = f"no queue of {partition_name} takes {counted(nodes, 'node')} for {walltime_text(seconds)}"
    return Problem(message + _as_far_as_known(site, partition_name), expected=_others(site, partition_name))


def _as_far_as_known(site: Site, partition_name: str) -> str:
    """What is to be said of a refusal that rests on limits which nobody verified."""
    path = f"partitions.{partition_name}.queues"
    source = site.source_of(path)
    if source is None or source.verified != "no":
        return ""
    return f", by limits that are not verified ({path} of the profile of {site.name})"


def _others(site: Site, partition_name: str) -> str:
    return "; ".join(f"{queue.name}: {limits(queue)}" for queue in site.partitions[partition_name].queues)


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
