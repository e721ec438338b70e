"""PRRTE, the launcher of Open MPI 5, and ORTE, that of Open MPI 4, which takes the same words."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.core.model.job import Job


class Prte(Launcher):
    """Ranks are mapped node by node, each with a core for every thread. Source: mpirun(1) of both; seen with 4.1."""

    name = "prte"
    program = "mpirun"

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        mapping = f"ppr:{job.ranks_per_node}:node:PE={job.threads_per_rank}"
        return [self.command, "-n", str(job.ranks), "--map-by", mapping]

    @property
    def local_rank(self) -> str:
        return "OMPI_COMM_WORLD_LOCAL_RANK"
