"""Hydra, the launcher of MPICH and of what descends from it: ``mpiexec -n RANKS -ppn RANKS_OF_A_NODE``."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.core.model.job import Job

_LOCAL_RANK = {"mvapich2": "MV2_COMM_WORLD_LOCAL_RANK", "parastation": ""}
"""Of whom it is not Hydra's own. MVAPICH2's: its user guide. ParaStation's is not known."""

_BOOTSTRAP = {"intel": "I_MPI_HYDRA_BOOTSTRAP", "mpich": "HYDRA_BOOTSTRAP"}


class Hydra(Launcher):
    """Source: ``mpiexec -help`` of MPICH 4.3 and Intel MPI 2021.17, with which its variable was seen too."""

    name = "hydra"
    program = "mpiexec"
    called_back_by_name = True

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        return [self.command, "-n", str(job.ranks), "-ppn", str(job.ranks_per_node)]

    @property
    def local_rank(self) -> str:
        return _LOCAL_RANK.get(self.mpi.flavour, "MPI_LOCALRANKID")

    @property
    def bootstrap_variable(self) -> str:
        return _BOOTSTRAP.get(self.mpi.flavour, "")
