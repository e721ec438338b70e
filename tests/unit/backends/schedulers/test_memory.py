"""Memory that a job asks for, in the words of each batch system, and what options of the profile leave it."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.backends.schedulers import Header, scheduler_for
from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Cpu, Gpu, Memory
from hpcgen.core.model.site import Partition

JOB = Job(nodes=2, ranks_per_node=8, threads_per_rank=1, walltime_s=60, command=["x"], memory_per_rank_gb=20, queue="a")


def header(kind: str, job: Job = JOB, queue: Queue | None = None, **facts: Any) -> Header:
    gpu = Gpu(vendor="nvidia", model="A100", count=4)
    cpu, queues = Cpu(target="zen3", cores=48), [queue or Queue(name="a")]
    partition = Partition(cpu=cpu, memory=Memory(total_gb=185), queues=queues, gpu=gpu)
    return Header("x", job, partition, BatchSystem(kind=kind, **facts))


def asked(found: Header) -> list[str]:
    lines = scheduler_for(found.scheduler).directives(found)
    return [line for line in lines if any(word in line for word in ("mem", "-M ", "rusage"))]


@pytest.mark.parametrize(
    ("kind", "request_", "line"),
    [
        ("slurm", None, "--mem=163840M"),
        ("slurm", "mem-per-cpu", "--mem-per-cpu=20480M"),
        ("slurm", "mem-per-gpu", "--mem-per-gpu=40960M"),
        ("pbs", "mem", "-l select=2:ncpus=48:mpiprocs=8:ompthreads=1:ngpus=4:mem=163840mb"),
        ("torque", "pmem", "-l nodes=2:ppn=48:gpus=4,pmem=3414mb,walltime=00:01:00"),
        ("lsf", "rusage", "-R rusage[mem=163840MB]"),
        ("lsf", "M", "-M 163840MB"),
        ("pjm", "node-mem", "-L node-mem=163840Mi"),
    ],
)
def test_a_job_asks_for_the_memory_of_its_ranks(kind: str, request_: str | None, line: str) -> None:
    assert asked(header(kind, memory_request=request_)) == [line]


@pytest.mark.parametrize("kind", ["slurm", "pbs", "torque", "lsf", "pjm", "gridengine"])
def test_a_job_asks_for_none_where_it_must_not_or_nobody_says_what_it_needs(kind: str) -> None:
    environment = {"parallel_environment": "mpi"} if kind == "gridengine" else {}
    assert asked(header(kind, memory_request="none", **environment)) == []
    unsaid = Job(nodes=1, ranks_per_node=8, threads_per_rank=1, walltime_s=60, command=["x"])
    assert asked(header(kind, unsaid, **environment)) == []


def test_without_gpus_memory_for_each_is_that_of_the_node() -> None:
    needing = Job(
        nodes=1,
        ranks_per_node=2,
        threads_per_rank=1,
        walltime_s=60,
        command=["x"],
        gpus_per_node=0,
        memory_per_rank_gb=1.5,
    )
    assert asked(header("slurm", needing, memory_request="mem-per-gpu")) == ["--mem=3072M"]


@pytest.mark.parametrize(
    ("directive", "given"),
    [
        ("--mem-per-cpu=3968M", 31),
        ("--mem=64G", 64),
        ("--mem-per-gpu=10g", 40),
        ("--mem=2048", 2),
        ("--mem=0", None),
        ("--mem-bind=local", None),
    ],
)
def test_an_option_of_the_profile_stands_alone_and_says_what_a_job_gets(directive: str, given: float | None) -> None:
    found = header("slurm", directives=[directive])
    own = [directive] if "bind" not in directive else ["--mem=163840M", directive]
    assert sorted(asked(found)) == sorted(own)
    said = scheduler_for(found.scheduler).memory_given(found)
    assert said == (None if given is None else (given, directive))


def test_a_queue_gives_its_default_where_the_job_asks_for_none() -> None:
    queue = Queue(name="a", default_memory={"cpu": 1.0})
    batch = scheduler_for(BatchSystem(kind="slurm"))
    assert batch.memory_given(header("slurm", queue=queue)) is None
    assert batch.memory_given(header("slurm", queue=queue, memory_request="none")) == (8.0, "the default of a")
