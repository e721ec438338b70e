"""What each launcher is told, and by which variable its ranks know their place on a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.backends.launchers import LAUNCHERS, launcher_names, launcher_of
from hpcgen.core.errors import UnknownNameError
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.job import Job
from tests.conftest import Command

JOB = Job(nodes=2, ranks_per_node=4, threads_per_rank=6, walltime_s=3600, command=["app"])
PALS = "mpiexec -n 8 --ppn 4 --depth 6 --cpu-bind depth"
HYDRA = "mpiexec -n 8 -ppn 4"


def launched(launcher: str, flavour: Any, gpus: int = 0, kind: str = "slurm") -> tuple[str, str]:
    mpi = HostMpi(flavour=flavour, version="1.0", abi="openmpi" if flavour == "openmpi" else "mpich", launcher=launcher)
    found = launcher_of(mpi, BatchSystem(kind=kind))
    return " ".join(found.words(JOB, gpus)), found.local_rank


@pytest.mark.parametrize(
    ("launcher", "flavour", "words", "local_rank"),
    [
        ("mpiexec", "intel", HYDRA, "MPI_LOCALRANKID"),
        ("mpirun", "mvapich2", HYDRA.replace("exec", "run"), "MV2_COMM_WORLD_LOCAL_RANK"),
        ("mpiexec", "cray-mpich", PALS, "PALS_LOCAL_RANKID"),
        # Aurora: MPICH, started by PALS.
        ("pals", "mpich", PALS, "PALS_LOCAL_RANKID"),
        ("hydra", "cray-mpich", HYDRA, "MPI_LOCALRANKID"),
        ("mpirun", "openmpi", "mpirun -n 8 --map-by ppr:4:node:PE=6", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("prte", "openmpi", "mpirun -n 8 --map-by ppr:4:node:PE=6", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("ibrun", "intel", "ibrun", "MPI_LOCALRANKID"),
        ("ibrun", "openmpi", "ibrun", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("jsrun", "openmpi", "jsrun -n 8 -r 4 -a 1 -c 6 -b packed:6", "JSM_NAMESPACE_LOCAL_RANK"),
        ("mpiexec", "parastation", HYDRA, ""),
    ],
)
def test_a_launcher_is_of_its_kind_whatever_the_mpi_is(
    launcher: str, flavour: str, words: str, local_rank: str
) -> None:
    assert launched(launcher, flavour) == (words, local_rank)


def test_gpus_are_given_by_those_that_can() -> None:
    assert "-g 1" in launched("jsrun", "openmpi", 1)[0]
    words, local_rank = launched("srun", "cray-mpich", 1)
    assert "--gpus-per-task=1" in words and local_rank == "SLURM_LOCALID"


def test_an_unknown_launcher_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no launcher is called 'plas'") as caught:
        launched("plas", "mpich")
    assert "pals" in caught.value.problems[0].remedy


def test_every_kind_can_be_named_and_says_the_same_name() -> None:
    assert set(LAUNCHERS.names()) < set(launcher_names())
    assert all(LAUNCHERS.find(name).name == name for name in LAUNCHERS.names())


TOY = """
from hpcgen.backends.launchers import Launcher

class Toy(Launcher):
    name = "toy"
    program = "toyrun"
    local_rank = "TOY_LOCAL"

    def words(self, job, gpus_per_rank=0):
        return [self.command, str(job.ranks)]
"""


def test_a_collection_brings_a_launcher_in_one_file(hpcgen: Command, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    for name in ("launchers", "site_profiles"):
        (ours / name).mkdir(parents=True)
    (ours / "launchers" / "toy.py").write_text(TOY)
    profile = "name: here\nextends: supermuc\nmpi: {launcher: toy}\n"
    (ours / "site_profiles" / "here.yaml").write_text(profile)
    done = hpcgen("--collection", str(ours), "job", "--site", "here", "--stack", "mpi-hello", "--nodes", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().splitlines()[-1].startswith("toyrun ")
