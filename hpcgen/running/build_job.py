"""A build as a job of the batch system, which calls this very hpcgen again on a compute node."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpcgen.backends.schedulers import Header, Scheduler, scheduler_for
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import PolicyError, Position, Problems
from hpcgen.core.model.job import Job, JobRequest, Queueing
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import counted
from hpcgen.launch.job.layout import resolve_job
from hpcgen.running.image_job import ImageJob
from hpcgen.running.submission import (
    Submitted,
    own_call,
    own_script,
    require_programs,
    with_files,
    written_and_submitted,
)


class BuildJob(msgspec.Struct, frozen=True):
    """What a build job is made of.

    words: options of ``hpcgen`` and its subcommand, as they are typed after ``hpcgen``.
    folder: where they are typed; relative paths in them are from there.
    tasks: with some, the job is an array: for each option that its tasks get, the value for each of them.
    limit: how many tasks may run at once; 0 for no limit.
    after: the job that has to end first; "" for none.
    environment: what :func:`hpcgen.running.submission.passed_on` gives.
    """

    site: Site
    partition: str
    name: str
    words: list[str]
    folder: Path
    request: JobRequest = JobRequest()
    tasks: dict[str, list[str]] = {}
    limit: int = 0
    after: str = ""
    environment: dict[str, str] = {}

    @property
    def count(self) -> int:
        """How many tasks it has; 0 where it is no array."""
        return len(next(iter(self.tasks.values()), []))


def check_site(site: Site, document: Document | None = None) -> None:
    """PolicyError unless the site has a batch system and lets images be built on nodes that reach what they need."""
    problems = Problems()
    allowed = site.containers.build_on
    takes_jobs = scheduler_for(site.scheduler).takes_jobs
    if not takes_jobs:
        message = f"{site.name} has no batch system to submit the build to"
        problems.add(message, remedy="build right here: omit --submit and --array")
    elif not allowed:
        problems.add(
            f"the profile of {site.name} does not say whether images may be built on compute nodes",
            _place(document, "containers"),
            expected="containers.build_on: [compute], or [login, compute]",
            remedy="ask the site, and enter the answer in the profile with its source",
        )
    elif "compute" not in allowed:
        problems.add(
            f"{site.name} allows images to be built only on its login nodes",
            _place(document, "containers", "build_on"),
            remedy="build on a login node: omit --submit and --array",
        )
    if takes_jobs and not site.network.internet.compute:
        problems.add(
            f"the compute nodes of {site.name} cannot reach the internet, and a build downloads packages",
            _place(document, "network", "internet", "compute"),
            remedy="build where network.internet is true: on a login node or another machine",
        )
    problems.raise_as(PolicyError)


def _place(document: Document | None, *path: str) -> Position | None:
    return document.position(path) if document is not None else None


def build_script(job: BuildJob) -> tuple[str, str]:
    """File name and text of the job's script.

    PolicyError: the site requires an account; no queue takes the job; an array where there are none. InputError: a
    value that cannot be written in a script or its header.
    """
    site = job.site
    scheduler = scheduler_for(site.scheduler)
    laid_out = _laid_out(job)
    # A build needs no GPU, and jobs that ask for one wait longer.
    partition = msgspec.structs.replace(site.partitions[job.partition], gpu=None)
    header = Header(name=job.name, job=laid_out, partition=partition, scheduler=site.scheduler)
    directives = scheduler.directives(header)
    if job.tasks:
        if not scheduler.task_variable:
            message = f"hpcgen cannot submit arrays to {scheduler.title}, the batch system of {site.name}"
            raise PolicyError(message, "--array", remedy="build one after the other: omit --array")
        directives += scheduler.array(job.count, job.limit).split("\n")
    if job.after:
        directives.append(scheduler.after(job.after))
    text = own_script(site, directives, _about(job), _call(job, scheduler), job.folder, job.environment)
    return f"build.{scheduler.file_name.rpartition('.')[2]}", text


def arrays(job: BuildJob) -> list[BuildJob]:
    """The job as arrays of no more tasks than the site's batch system takes in one."""
    facts = job.site.scheduler
    most = facts.max_array_size or scheduler_for(facts).array_size
    if not most or job.count <= most:
        return [job]
    parts = []
    for number, start in enumerate(range(0, job.count, most), 1):
        tasks = {name: values[start : start + most] for name, values in job.tasks.items()}
        parts.append(msgspec.structs.replace(job, name=f"{job.name}-{number}", tasks=tasks))
    return parts


def _about(job: BuildJob) -> str:
    thing = "block" if "artifact" in job.tasks else "image"
    what = f"{counted(job.count, thing)}, one task each" if job.tasks else "an image"
    return f"Build job by hpcgen: {what}, on compute nodes of {job.site.name}."


def _laid_out(job: BuildJob) -> Job:
    """One node for one process that may use all its cores."""
    site = job.site
    cores = site.partitions[job.partition].cpu.for_jobs
    if site.scheduler.account == "required" and not job.request.account:
        message = f"{site.name} requires an account"
        raise PolicyError(message, remedy="add --account NAME")
    request = msgspec.structs.replace(job.request, nodes=1, ranks_per_node=1, threads_per_rank=cores)
    build = Stack(name="build", title="a build", blocks={}, run=RunSpec(command=["hpcgen", "build"], mpi=False))
    return resolve_job(site, job.partition, build, request)


def _call(job: BuildJob, scheduler: Scheduler) -> list[str]:
    call = own_call(job.words)
    if not job.tasks:
        return [call]
    first = scheduler.first_task
    task = f"{scheduler.task_variable} - {first}" if first else scheduler.task_variable
    lists = [[f"{name}s=(", *(f"    {sh(value)}" for value in values), ")"] for name, values in job.tasks.items()]
    options = [f'--{name} "${{{name}s[${task}]}}"' for name in job.tasks]
    return [*(line for each in lists for line in each), " ".join([call, *options])]


def submit_build(job: BuildJob, plan: Plan) -> Submitted:
    """Write the script among the job's files and submit it in the folder where the build is typed.

    plan: what is built, or the first of it: what follows the job reads the site from it.
    MissingToolError: the batch system's commands are not here.
    OutputError: the script cannot be written.
    JobFailedError: the batch system refuses the job.
    """
    queue = scheduler_for(job.site.scheduler)
    require_programs(queue, job.site.name)
    queueing = Queueing(tasks=job.count or None)
    here = ImageJob(msgspec.structs.replace(plan, site=job.site, partition=job.partition), {}, queueing=queueing)
    here, own = with_files(here, job.folder, job.name)
    name, text = build_script(msgspec.structs.replace(job, site=here.plan.site))
    return written_and_submitted(here, queue, job.name, own / name, text, job.folder)
