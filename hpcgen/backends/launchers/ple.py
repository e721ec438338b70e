"""mpiexec of Fujitsu's MPI, over its parallel execution environment (PLE): a job's ``--mpi`` says where ranks are."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.core.model.job import Job


class Ple(Launcher):
    """Source: public job scripts of Fugaku and Wisteria that read its variable. Never started."""

    name = "ple"
    program = "mpiexec"

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        return [self.command, "-n", str(job.ranks)]

    @property
    def local_rank(self) -> str:
        return "PLE_RANK_ON_NODE"
