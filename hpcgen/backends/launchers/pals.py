"""PALS, HPE's launcher beside PBS: ``mpiexec -n RANKS --ppn … --depth … --cpu-bind depth``."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.core.model.job import Job


class Pals(Launcher):
    """Each rank keeps to as many CPUs as it has threads, whatever MPI it is of.

    Source: argonne-lcf/user-guides, docs/polaris/running-jobs and docs/aurora/running-jobs-aurora.md.
    """

    name = "pals"
    program = "mpiexec"

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        words = [self.command, "-n", str(job.ranks), "--ppn", str(job.ranks_per_node)]
        return [*words, "--depth", str(job.threads_per_rank), "--cpu-bind", "depth"]

    @property
    def local_rank(self) -> str:
        return "PALS_LOCAL_RANKID"
