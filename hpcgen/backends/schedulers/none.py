"""No batch system: scripts are started as they are."""

from __future__ import annotations

from hpcgen.backends.schedulers.base import Header, Scheduler


class NoScheduler(Scheduler):
    """A machine where programs are simply started."""

    name = "none"
    title = "no batch system"
    file_name = "run.sh"
    mark = ""

    def directives(self, header: Header) -> list[str]:
        return []


class Direct(NoScheduler):
    """A start right here, on a system with or without a batch system."""

    # In a job after sbatch --export=NONE, as in Slurm's own script.
    start = "unset SLURM_EXPORT_ENV"
