"""Who decides what happens on the host when an image is started: its user's own profiles, not the image's record.

An image may come from a stranger, and what its record says of the host would run there as its user: variables such as
PATH or LD_PRELOAD, modules, the launcher and its directives, and folders that are shown inside.
"""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, Problem, UnknownNameError
from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.site import Site, SiteEngine
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.units import parse_walltime, some
from hpcgen.launch.job.layout import resolve_job, started

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog


_NOT_THERE = ("title", "aliases", "operator", "links", "notes", "sources", "extends", "network", "image", "images")
"""Fields of a profile that a start does not depend on: what is there for people, what builds need, and
what is asked of the user's own profile alone."""


class HostSide(msgspec.Struct, frozen=True):
    """What an image is started by.

    recorded: the plan in the image; with the user's profile of its site, where that says the same.
    site: another profile, if that is not so or another was asked for.
    stack_outside: whether variables of the recorded stack are set on the host too, not in the container alone.
    findings: what the user should know of it.
    """

    recorded: Plan
    site: Site | None
    stack_outside: bool
    findings: list[Finding] = []


def host_side(
    recorded: Plan, site: Site | None, catalog: Catalog, *, trust: bool, stack: Stack | None = None
) -> HostSide:
    """Whose facts an image is started by.

    recorded: the plan in the image.
    site: the profile that its user named, if any.
    trust: its user says that the image's own record may decide.
    stack: the user's own stack, which decides in the place of the recorded one.
    InputError: the user has no profile of the recorded name, and names none.
    """
    if trust:
        message = f"the image's own record of {recorded.site.name} decides here: {asked_of_host(recorded)}"
        told = [] if site is not None else [Finding(name="trust", severity="warning", message=message)]
        return HostSide(recorded, site, stack_outside=True, findings=told)
    stack_outside = stack is not None or _same_stack(recorded.stack, catalog)
    if site is not None:
        return HostSide(recorded, site, stack_outside)
    name = recorded.site.name
    try:
        own = catalog.site(name)
    except UnknownNameError as failure:
        raise InputError(
            [
                Problem(
                    f"the image was built for {name}, and there is no profile of that site here; the image's "
                    "own record must not decide what runs on this host",
                    expected="your own profile",
                    remedy="--site NAME|FILE, or --trust-image if you trust the image's source",
                )
            ]
        ) from failure
    if _facts(own) == _facts(recorded.site) and _known_queue(own, recorded):
        return HostSide(msgspec.structs.replace(recorded, site=own), None, stack_outside)
    message = f"the image was built with another profile of {name}; yours is used"
    return HostSide(recorded, own, stack_outside, [Finding(name="profile", severity="note", message=message)])


def _facts(site: Site) -> dict[str, Any]:
    """What a start depends on, as plain data.

    Where images lie is for those who start one that they do not name, and the engine is chosen anew.
    """
    containers = msgspec.structs.replace(site.containers, image_directory=None, preferred="")
    data = msgspec.to_builtins(msgspec.structs.replace(site, containers=containers))
    return {name: value for name, value in data.items() if name not in _NOT_THERE}


def _known_queue(site: Site, recorded: Plan) -> bool:
    """Whether the recorded job goes where the profile sends such jobs."""
    partition = site.partitions.get(recorded.partition)
    queues = [queue.name for queue in partition.queues] if partition is not None else []
    return partition is not None and recorded.job.queue in (queues or [""])


def _same_stack(stack: Stack, catalog: Catalog) -> bool:
    """Whether the user has the same stack, or nothing of it reaches the host."""
    if not stack.run.environment:
        return True
    try:
        return catalog.stack(stack.name).run.environment == stack.run.environment
    except UnknownNameError:
        return False


def changed_variables(recorded: Plan, catalog: Catalog) -> list[Finding]:
    """What the stack of an image sets since it was built, where that is found again; the image knows nothing of it."""
    name = _stack_of(recorded)
    if name is None:
        return []
    try:
        now = catalog.stack(name)
    except HpcgenError:
        return []
    then = recorded.stack.run.environment
    new = [f"{each}={value}" for each, value in now.run.environment.items() if then.get(each) != value]
    gone = [f"no {each}" for each in then if each not in now.run.environment]
    if now.name != recorded.stack.name or not (new or gone):
        return []
    message = f"the stack {name} has {some([*new, *gone], 4)} since the image was built; the image's variables are used"
    return [Finding(name="environment", severity="warning", message=message, remedy=f"add --stack {name}")]


def _stack_of(recorded: Plan) -> str | None:
    """The stack by the name or file that the image's own command has; None for a file that is not here."""
    from hpcgen.catalog.catalog import is_file_name

    try:
        words = shlex.split(recorded.command)
    except ValueError:
        return None
    name = next((after for word, after in pairwise(words) if word == "--stack"), recorded.stack.name)
    return None if is_file_name(name) and not Path(name).is_file() else name


def asked_of_host(recorded: Plan) -> str:
    """What a record has happen on the host, for people: all that a job script takes from a profile."""
    site, mpi, queue = recorded.site, recorded.site.mpi, recorded.job.queue
    partition = site.partitions[recorded.partition]
    engine = site.containers.engines.get(recorded.engine, SiteEngine())
    of_mpi = mpi.with_gpus(recorded.gpu_vendor) if mpi is not None and recorded.stack.run.mpi else None
    proxy = site.network.job_proxy
    proxies = {name: value for name, (_, value) in proxy.variables().items()} if proxy is not None else {}
    environment = {**proxies, **site.environment_of(recorded.partition), **recorded.stack.run.environment}
    environment |= of_mpi.environment if of_mpi is not None else {}
    file_systems = [each for each in site.file_systems.values() if each.bind]
    parts = {
        "environment": [f"{name}={value}" for name, value in environment.items()],
        "without": site.unset_environment,
        "setup": [f"{line};" for line, _ in site.system.preparing([""])],
        "modules": [
            *site.scheduler.modules,
            *([*of_mpi.modules, *of_mpi.bind_modules] if of_mpi is not None else []),
            *engine.modules,
        ],
        "binds": [
            *([bind.source for bind in of_mpi.binds] if of_mpi is not None else []),
            *(each.path or f"${each.variable}" for each in file_systems if each.path or each.variable),
            *recorded.stack.run.binds,
        ],
        "libraries": [*of_mpi.preload, *of_mpi.libraries] if of_mpi is not None else [],
        "devices": site.fabric_of(recorded.partition).devices,
        "engine": engine.run_options,
        "launcher": [of_mpi.launcher] if of_mpi is not None else [],
        "directives": [
            *site.scheduler.directives,
            *partition.directives,
            *(word for each in partition.queues if each.name == queue for word in each.directives),
        ],
    }
    said = "; ".join(f"{name} {' '.join(values)}" for name, values in parts.items() if values)
    return said or "nothing"


# A recorded plan for the site, the kind of node and the job that are asked for now; its blocks stay.


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

    ``renewed``: ``site`` is another profile of the recorded site, so that the job is as large as the recorded one.
    ``anew``: the stack says otherwise how it is started, so that nothing of the recorded job's size holds.
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
    # What runs on the host itself is never taken from a record.
    job = msgspec.structs.replace(job, before=request.before or [], afterwards=request.afterwards or [])
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
