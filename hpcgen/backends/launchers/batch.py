"""The launcher of a batch system itself: srun, flux run."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.backends.schedulers import Scheduler
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.job import Job


class BatchLauncher(Launcher):
    """What the batch system's class says of it."""

    name = "batch"
    of_mpi = False

    def __init__(self, mpi: HostMpi, batch: BatchSystem, of: Scheduler) -> None:
        super().__init__(mpi, batch, of.launcher)
        self.of = of

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        return self.of.launch(job, self.mpi.pmi) + (self.of.bind_gpus(gpus_per_rank) if gpus_per_rank else [])

    def binds_gpus(self, gpus_per_rank: int) -> bool:
        return bool(self.of.bind_gpus(gpus_per_rank))

    @property
    def local_rank(self) -> str:
        return self.of.local_rank
