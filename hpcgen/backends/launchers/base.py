"""What starts the ranks of a host's MPI: the words of its command, and how a rank learns its place."""

from __future__ import annotations

from typing import ClassVar

from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.job import Job


class Launcher:
    """Base of the launchers. A class makes words; it starts nothing itself.

    name: its kind, as profiles name it in ``mpi.launcher``.
    program: what is called, where the profile names no other.
    of_mpi: it comes with an MPI or a site, and finds the nodes of a job by itself; else it is a batch system's own.
    called_back_by_name: its processes on the nodes of a job call it by the name of the node that it was started on.
    """

    name: ClassVar[str]
    program: ClassVar[str]
    of_mpi: ClassVar[bool] = True
    called_back_by_name: ClassVar[bool] = False

    def __init__(self, mpi: HostMpi, batch: BatchSystem, command: str = "") -> None:
        self.mpi, self.batch = mpi, batch
        self.command = command or self.program

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        """The words before the command, with the ranks of a job.

        ``gpus_per_rank``: GPUs that it is to give each rank, where :meth:`binds_gpus` says that it can; 0 if it is not
        to.
        """
        raise NotImplementedError

    def binds_gpus(self, gpus_per_rank: int) -> bool:
        """Whether it can give each rank so many GPUs of its own."""
        return False

    @property
    def local_rank(self) -> str:
        """The variable with a rank's number on its node; "" where its name is not known."""
        raise NotImplementedError

    @property
    def bootstrap_variable(self) -> str:
        """The variable that says how it reaches the nodes (``mpi.bootstrap``); "" where it has none."""
        return ""
