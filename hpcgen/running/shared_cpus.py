"""Threads of OpenMP that have to share processors: they must not wait for each other in a loop.

Measured on two cores with PyTorch 2.13 and GNU's OpenMP, which spins where it believes that its process is alone: four
threads of two processes were 1.4 to 1.8 times as fast with ``OMP_WAIT_POLICY=passive``; one process with two threads on
two free cores had 0.7 to 1.0, so that it is not set there, and nothing to gain from ``active`` and from bound threads
(``benchmarks/gains/run.py --openmp``). Source of the variable: the OpenMP specification; all runtimes read it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from hpcgen.core.support.units import counted
from hpcgen.launch.start import batch_of, start
from hpcgen.running.image_job import ImageJob

POLICY = "OMP_WAIT_POLICY"


def sharing_cpus(job: ImageJob, environ: Mapping[str, str] = os.environ) -> ImageJob:
    """The job as it starts here: where its threads share CPUs they wait passively, unless somebody says how they wait.

    Not where the batch system starts the ranks: its steps get CPUs of their own.
    """
    size, run = job.plan.job, job.plan.stack.run
    if size.nodes > 1 or size.ranks_per_node * size.threads_per_rank <= _cpus():
        return job
    site = job.plan.site
    of_site = {**site.environment, **site.partitions[job.plan.partition].environment}
    said = {**environ, **job.environment, **job.inside, **of_site, **run.environment}
    if POLICY in said or batch_of(job.plan, start(job.plan, job.environment)) is not None:
        return job
    replace = msgspec.structs.replace
    run = replace(run, environment={**run.environment, POLICY: "passive"})
    return replace(job, plan=replace(job.plan, stack=replace(job.plan.stack, run=run)))


def shared_cpus_notes(job: ImageJob, environ: Mapping[str, str]) -> list[str]:
    """What the user should know of that; nothing where nothing changes."""
    if sharing_cpus(job, environ) is job:
        return []
    size = job.plan.job
    threads = counted(size.ranks_per_node * size.threads_per_rank, "thread")
    return [
        f"{threads} share {counted(_cpus(), 'CPU')}, which is what this process may use: they wait passively "
        f"({POLICY}=passive); with --threads {max(1, _cpus() // size.ranks_per_node)} they would not share"
    ]


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
