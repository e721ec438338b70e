"""LSF and PJM, of which only manuals were there: headers, job scripts, and answers as documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.backends.schedulers import Header, scheduler_for
from hpcgen.backends.schedulers.base import GONE, JobState
from hpcgen.backends.schedulers.lsf import Lsf
from hpcgen.backends.schedulers.pjm import Pjm
from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.nodes import Cpu, Gpu, Memory
from hpcgen.core.model.site import Partition
from tests.conftest import Command

JOB = Job(nodes=2, ranks_per_node=4, threads_per_rank=6, walltime_s=5430, command=["x"], queue="batch", account="abc")


def header(kind: str, *, gpus: int | None = None) -> Header:
    gpu = Gpu(vendor="nvidia", model="V100", count=gpus) if gpus else None
    partition = Partition(
        cpu=Cpu(target="zen3", cores=24), memory=Memory(total_gb=128), queues=[Queue(name="batch")], gpu=gpu
    )
    return Header("3dgan", JOB, partition, BatchSystem(kind=kind, directives=["-Zs"]))


def test_the_header_of_lsf() -> None:
    assert scheduler_for(BatchSystem(kind="lsf")).directives(header("lsf", gpus=6)) == [
        "-J 3dgan",
        "-o 3dgan.o%J",
        "-W 01:31",
        "-n 48",
        "-R span[ptile=24]",
        "-x",
        "-gpu num=6",
        "-q batch",
        "-P abc",
        "-Zs",
    ]


def test_the_header_of_pjm() -> None:
    assert scheduler_for(BatchSystem(kind="pjm")).directives(header("pjm")) == [
        "-N j3dgan",
        "-j",
        "-L node=2",
        "--mpi proc=8,max-proc-per-node=4",
        "-L elapse=01:30:30",
        "-L rscgrp=batch",
        "-g abc",
        "-Zs",
    ]


def test_ids_are_found_in_what_is_printed() -> None:
    assert Lsf().job_id("greeting\nJob <17> is submitted to default queue <normal>.\n") == "17"
    assert Pjm().job_id("[INFO] PJM 0000 pjsub Job 1334958 submitted.\n") == "1334958"
    assert Lsf().job_id("Request aborted by esub.") == Pjm().job_id("[ERR.] PJM 0044 pjsub no group") == ""


LIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit."


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("PEND|-|0 second(s)|-\n", JobState("waiting", "PEND", elapsed_s=0)),
        ("RUN|-|12 second(s)|-\n", JobState("running", "RUN", elapsed_s=12)),
        ("DONE|-|3 second(s)|-\n", JobState("ended", "DONE", good=True, exit_status=0, elapsed_s=3)),
        ("EXIT|7|3 second(s)|-\n", JobState("ended", "EXIT", exit_status=7, elapsed_s=3)),
        (f"EXIT|140|60 second(s)|{LIMIT}\n", JobState("ended", "TERM_RUNLIMIT", False, LIMIT, 140, elapsed_s=60)),
    ],
)
def test_what_bjobs_says(said: str, state: JobState) -> None:
    assert Lsf().read(0, said, "") == state


def test_a_job_that_is_forgotten_and_a_system_that_does_not_answer() -> None:
    assert Lsf().read(255, "", "Job <17> is not found\n") == GONE
    assert Lsf().read(255, "", "LSF is down. Please wait ...") is None
    assert Pjm().read(0, "JOB_ID     ST  EC\n", "") == GONE
    assert Pjm().read(1, "", "[ERR.] PJM 0090 pjstat internal error") is None


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ("17         QUE -", JobState("waiting", "QUE")),
        ("17         RUN -", JobState("running", "RUN")),
        ("17         EXT 0", JobState("ended", "EXT", good=True, exit_status=0)),
        ("17         EXT 3", JobState("ended", "EXT", exit_status=3)),
        ("17         CCL 0", JobState("ended", "CCL", exit_status=0)),
    ],
)
def test_what_pjstat_says(row: str, state: JobState) -> None:
    assert Pjm().read(0, f"JOB_ID     ST  EC\n{row}\n", "") == state


@pytest.mark.parametrize(
    ("kind", "name", "mark", "hydra"),
    [
        ("lsf", "job.lsf", "#BSUB -n 96", "I_MPI_HYDRA_BOOTSTRAP=lsf"),
        ("pjm", "job.pjm", "#PJM -L node=2", "I_MPI_HYDRA_BOOTSTRAP_EXEC=/bin/pjrsh"),
    ],
)
def test_a_whole_job_script(hpcgen: Command, tmp_path: Path, kind: str, name: str, mark: str, hydra: str) -> None:
    ours = tmp_path / "ours" / "site_profiles"
    ours.mkdir(parents=True)
    # The profile's own options and way to other nodes are Slurm's.
    replaced = f"scheduler: {{kind: {kind}, directives: [], modules: [], output: '', error: ''}}"
    (ours / "here.yaml").write_text(f"name: here\nextends: supermuc\n{replaced}\nmpi: {{bootstrap: null}}\n")
    words = ("--collection", str(ours.parent), "render", "--site", "here", "--stack", "mpi-hello", "--nodes", "2")
    done = hpcgen(*words, "-o", "kit")
    assert done.returncode == 0, done.stderr
    script = (tmp_path / "kit" / name).read_text()
    assert mark in script and hydra in script and "#SBATCH" not in script
    assert "mpiexec -n 8 -ppn 4" in script
