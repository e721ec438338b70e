"""A recorded plan for the site, the kind of node and the job that are asked for now; its blocks stay."""

from __future__ import annotations

import msgspec

from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.launch.job.layout import resolve_job, started
from hpcgen.launch.job.walltime import parse_walltime


def laid_out(
    recorded: Plan,
    site: Site | None,
    partition: str | None,
    request: JobRequest,
    *,
    renewed: bool = False,
    anew: bool = False,
) -> Plan:
    """A recorded plan with the site, partition and job that are asked for.

    Parameters
    ----------
    renewed: ``site`` is another profile of the recorded site, so that the job is as large as the recorded one.
    anew: the stack says otherwise how it is started, so that nothing of the recorded job's size holds.
    """
    here = site or recorded.site
    name = _partition(recorded, here, partition)
    old = recorded.job
    command, steps = started(request, old.command, old.steps)
    if here.name == recorded.site.name:
        request = msgspec.structs.replace(request, account=request.account or old.account or None)
    size = (request.nodes, request.ranks_per_node, request.threads_per_rank, request.memory_per_rank_gb)
    layout = (*size, request.gpus_per_node, request.rank_gpus, request.queue)
    same_place = site is None and name == recorded.partition and not anew
    if same_place and request.gpus_per_node is None and any(map(_asked_for_gpus, old.reasons)):
        request = msgspec.structs.replace(request, gpus_per_node=old.gpus_per_node)
    if same_place and all(each is None for each in layout):
        job = _recorded_job(old, request)
    else:
        # How the program finds its GPU goes with it to every machine.
        request = msgspec.structs.replace(request, rank_gpus=request.rank_gpus or old.rank_gpus)
        still = same_place or (renewed and name == recorded.partition and not anew)
        if still and not same_place and all(each is None for each in layout):
            request = _as_large(old, request)
        job = resolve_job(here, name, recorded.stack, request, old.walltime_s if still else None)
    job = msgspec.structs.replace(job, command=command, steps=steps, name=request.name or old.name)
    return msgspec.structs.replace(recorded, site=here, partition=name, job=job)


def started_as(recorded: Plan, stack: Stack) -> Plan:
    """A recorded plan whose program is started as the stack says now; what was asked for when it was built stays."""
    replace = msgspec.structs.replace
    then, now = recorded.stack.run, stack.run
    if then == now:
        return recorded
    job = recorded.job
    if (job.command, job.steps) in ((then.command, []), ([], then.steps)):
        command, steps = started(JobRequest(), now.command, now.steps)
        job = replace(job, command=command, steps=steps)
    return replace(recorded, stack=replace(recorded.stack, run=now), job=job)


def _as_large(old: Job, request: JobRequest) -> JobRequest:
    """What is asked, with the size of a recorded job."""
    return msgspec.structs.replace(
        request,
        nodes=old.nodes,
        ranks_per_node=old.ranks_per_node,
        threads_per_rank=old.threads_per_rank,
        memory_per_rank_gb=old.memory_per_rank_gb,
        gpus_per_node=old.gpus_per_node,
    )


def _recorded_job(old: Job, request: JobRequest) -> Job:
    seconds = old.walltime_s if request.walltime is None else parse_walltime(request.walltime)
    reasons = old.reasons
    if request.walltime is not None:
        reasons = [reason for reason in reasons if not _of_time(reason)]
        reasons.append(JobReason(field="walltime_s", rule="asked"))
    return msgspec.structs.replace(old, walltime_s=seconds, account=request.account or "", reasons=reasons)


def _asked_for_gpus(reason: JobReason | str) -> bool:
    """Whether it says that the user chose the number of GPUs, as of a job that wants none."""
    return isinstance(reason, JobReason) and (reason.field, reason.rule) == ("gpus_per_node", "asked")


def _of_time(reason: JobReason | str) -> bool:
    """Whether it says why the job has its time; in plans of hpcgen 0.1.0 the first word tells."""
    return reason.startswith("time ") if isinstance(reason, str) else reason.field == "walltime_s"


def _partition(recorded: Plan, site: Site, asked: str | None) -> str:
    if asked is None:
        same = site.name == recorded.site.name and recorded.partition in site.partitions
        return recorded.partition if same else site.default_partition
    return site.known_partition(asked)
