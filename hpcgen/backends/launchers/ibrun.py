"""ibrun of TACC, which takes nodes and ranks from the job's header, for whatever MPI is loaded."""

from __future__ import annotations

from hpcgen.backends.launchers.hydra import Hydra
from hpcgen.core.model.job import Job


class Ibrun(Hydra):
    """It calls the launcher of the MPI, whose variables ranks have. Source: TACC/TACC-Docs, docs/basics."""

    name = "ibrun"
    program = "ibrun"

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        return [self.command]

    @property
    def local_rank(self) -> str:
        return "OMPI_COMM_WORLD_LOCAL_RANK" if self.mpi.flavour == "openmpi" else super().local_rank
