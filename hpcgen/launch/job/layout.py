"""How many processes of what size are started where: a request, the site's layouts and the stack become a job.

Pure: nothing is read or written. All that does not fit the machine is told at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import Problem, Problems
from hpcgen.core.model.job import Job, JobRequest, JobStep
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.site import Partition, Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.units import counted, number
from hpcgen.launch.job.measured_layouts import Considered, consider, usable_gb
from hpcgen.launch.job.queues import place, unknown_limits


class _Shape(msgspec.Struct):
    """Ranks per node and threads per rank, each with the reason."""

    ranks: int
    threads: int
    ranks_reason: JobReason
    threads_reason: JobReason


def resolve_job(
    site: Site, partition_name: str, stack: Stack, request: JobRequest, recorded_seconds: int | None = None
) -> Job:
    """The job of a stack on one kind of node, which fits it.

    partition_name: a partition of the profile.
    request: what the user asked for; it wins over the site's layouts, and these over one rank on all cores.
    recorded_seconds: the time that an image's record has, where none is asked for.
    InputError: the time limit is none.
    PolicyError: the job does not fit the machine; every reason at once.
    """
    job, problems = lay_out(site, partition_name, stack, request, recorded_seconds)
    too_much = memory_problem(partition_name, site.partitions[partition_name], job)
    if problems or too_much is not None:
        from hpcgen.launch.job.remedies import changes, refusal

        every = [*problems, *([too_much] if too_much is not None else [])]
        # Its nodes are chosen; another kind would need another image.
        found = (each for each in changes(site, partition_name, stack, request) if each.partition == partition_name)
        raise refusal(every, found, lambda _: True)
    return job


def lay_out(
    site: Site, partition_name: str, stack: Stack, request: JobRequest, recorded_seconds: int | None = None
) -> tuple[Job, list[Problem]]:
    """The job of a stack on one kind of node, and why it does not fit there but for its memory.

    The parameters are those of :func:`resolve_job`. InputError where the time limit is none.
    """
    partition = site.partitions[partition_name]
    memory = request.memory_per_rank_gb or stack.run.memory_per_rank_gb
    considered = consider(site, partition_name, stack, request, memory)
    layout = next((each for each in considered if each.taken), None)
    gpus, gpus_reason, gpu_problem = _gpus(partition_name, partition, stack, request)
    shape = _shape(partition, stack, request, layout, gpus)
    nodes, nodes_reason = _nodes(request, layout)
    problems = _misfits(site, partition_name, stack, nodes, shape)
    problems += gpu_problem
    where = place(site, partition_name, nodes, request, recorded_seconds)
    problems += where.problems
    reasons: list[JobReason | str] = [nodes_reason, shape.ranks_reason, shape.threads_reason, *gpus_reason]
    reasons += where.reasons
    if request.memory_per_rank_gb:
        reasons.append(JobReason(field="memory_per_rank_gb", rule="asked"))
    elif memory is not None:
        reasons.append(JobReason(field="memory_per_rank_gb", rule="stack", by=stack.name))
    command, steps = started(request, stack.run.command, stack.run.steps)
    job = Job(
        nodes=nodes,
        ranks_per_node=shape.ranks,
        threads_per_rank=shape.threads,
        walltime_s=where.seconds,
        command=command,
        steps=steps,
        name=request.name,
        queue=where.queue,
        account="" if site.scheduler.account == "none" else request.account or "",
        memory_per_rank_gb=memory,
        gpus_per_node=gpus,
        rank_gpus=request.rank_gpus or stack.run.rank_gpus,
        before=request.before or [],
        afterwards=request.afterwards or [],
        reasons=reasons,
    )
    return job, problems


def started(request: JobRequest, command: Sequence[str], steps: Sequence[JobStep]) -> tuple[list[str], list[JobStep]]:
    """The command or the steps of a job: what the user asks for, else those that are given, of which steps win."""
    if request.command:
        return list(request.command), []
    wanted = list(request.steps or steps)
    return ([], wanted) if wanted else (list(command), [])


def job_findings(site: Site, partition_name: str, job: Job, request: JobRequest | None = None) -> list[Finding]:
    """What the user has to fill in or should know before submitting."""
    kind = site.scheduler.account
    found = []
    if kind == "required" and not job.account:
        found.append(
            Finding(
                name="account",
                severity="warning",
                message=f"{site.name} requires an account",
                remedy="add --account, or edit the script",
            )
        )
    elif request is not None and request.account and kind == "none":
        message = f"{site.name} has no accounts, so {request.account!r} is ignored"
        found.append(Finding(name="account", severity="note", message=message, remedy="leave --account out"))
    if not job.command and not job.steps:
        message = "the stack names no command, so each job has to"
        remedy = "add `-- COMMAND` to `hpcgen run` or `hpcgen submit`, or `command` below `run` in the stack"
        found.append(Finding(name="command", severity="note", message=message, remedy=remedy))
    return found + (unknown_limits(site, partition_name, job, request) if request is not None else [])


def _gpus(
    partition_name: str, partition: Partition, stack: Stack, request: JobRequest
) -> tuple[int, list[JobReason], list[Problem]]:
    """GPUs of each node that the job asks for: what the user says, else the stack, else all of the node."""
    there = partition.gpu.count if partition.gpu is not None else 0
    if request.gpus_per_node is not None:
        wanted, why = request.gpus_per_node, JobReason(field="gpus_per_node", rule="asked")
    elif stack.run.gpus_per_node is not None:
        wanted = min(stack.run.gpus_per_node, there)
        why = JobReason(field="gpus_per_node", rule="stack", by=stack.name)
    else:
        wanted, why = there, JobReason(field="gpus_per_node", rule="all of a node", by=partition_name)
    if wanted <= there:
        return wanted, [why] if there else [], []
    found = counted(there, "GPU") if there else "no GPU"
    message = f"a node of {partition_name} has {found}, and {wanted} were requested"
    return there, [], [Problem(message, "--gpus", expected=f"0 to {there}" if there else "0")]


def _shape(partition: Partition, stack: Stack, request: JobRequest, chosen: Considered | None, gpus: int) -> _Shape:
    cores = partition.cpu.for_jobs
    ranks, threads = request.ranks_per_node, request.threads_per_rank
    layout = chosen.layout if chosen is not None else None
    ranks_why = JobReason(field="ranks_per_node", rule="asked")
    threads_why = JobReason(field="threads_per_rank", rule="asked")
    from_layout = {"rule": "layout", "by": layout.partition if layout is not None else ""}
    if chosen is not None and chosen.for_nodes:
        from_layout["note"] = chosen.why
    if ranks is None and layout is not None:
        ranks = layout.ranks_per_node
        ranks_why = replace(ranks_why, **from_layout, measured=layout.measured or "")
    elif ranks is None and stack.run.ranks_per_node is not None:
        ranks = stack.run.ranks_per_node
        ranks_why = replace(ranks_why, rule="stack", by=stack.name)
    elif ranks is None and stack.run.mpi and gpus:
        ranks = gpus
        ranks_why = replace(ranks_why, rule="one per GPU")
    elif ranks is None:
        ranks = 1
        ranks_why = replace(ranks_why, rule="no layout" if stack.run.mpi else "no mpi", by=stack.name)
    if threads is None and layout is not None:
        threads = layout.threads_per_rank
        threads_why = replace(threads_why, **from_layout)
    elif threads is None:
        threads = max(1, cores // ranks)
        threads_why = replace(threads_why, rule="shared cores", by=str(cores), note=counted(ranks, "rank"))
    return _Shape(ranks, threads, ranks_why, threads_why)


def _nodes(request: JobRequest, chosen: Considered | None) -> tuple[int, JobReason]:
    if request.nodes is not None:
        return request.nodes, JobReason(field="nodes", rule="asked")
    if chosen is not None:
        return chosen.layout.nodes, JobReason(field="nodes", rule="layout", by=chosen.layout.partition)
    return 1, JobReason(field="nodes", rule="default")


def _misfits(site: Site, partition_name: str, stack: Stack, nodes: int, shape: _Shape) -> list[Problem]:
    partition = site.partitions[partition_name]
    problems = Problems()
    if not stack.run.mpi and nodes * shape.ranks > 1:
        problems.add(
            f"stack {stack.name} runs without MPI, as one process, not as {nodes} × {shape.ranks}",
            remedy="give the stack the block mpi, and mpi: true in its run",
        )
    # Where a batch system counts more slots, its nodes have, or take on, so many processes.
    hardware = max(partition.cpu.for_jobs * partition.cpu.threads_per_core, partition.slots or 0)
    if shape.ranks * shape.threads > hardware:
        problems.add(
            f"{counted(shape.ranks, 'rank')} × {counted(shape.threads, 'thread')} = {shape.ranks * shape.threads} "
            f"do not fit on the {hardware} hardware threads of a node of {partition_name}",
            expected=f"ranks × threads of at most {hardware}, best {partition.cpu.for_jobs} (the cores)",
        )
    if partition.nodes is not None and nodes > partition.nodes:
        problems.add(
            f"{nodes} nodes are more than the {partition.nodes} of {partition_name}",
            expected=f"1 to {partition.nodes}" if partition.nodes > 1 else "1",
        )
    if nodes > 1 and not scheduler_for(site.scheduler).takes_jobs:
        problems.add(
            f"{nodes} nodes need a batch system, and {site.name} has none",
            expected="one node",
            remedy="use a site with a scheduler",
        )
    return problems


def memory_problem(partition_name: str, partition: Partition, job: Job) -> Problem | None:
    """That the ranks of a node need more memory than a job may use of it; None where they fit or none is asked for."""
    memory, usable = job.memory_per_rank_gb, usable_gb(partition)
    if memory is None or memory * job.ranks_per_node <= usable:
        return None
    return Problem(
        f"{counted(job.ranks_per_node, 'rank')} × {number(memory)} GB = {number(memory * job.ranks_per_node)} GB "
        f"exceeds the {number(usable)} GB that a job may use on a node of {partition_name}",
        expected=f"at most {number(usable / job.ranks_per_node)} GB per rank",
    )
