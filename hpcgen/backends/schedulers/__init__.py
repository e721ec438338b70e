"""Batch systems: job headers, launchers and queues. One class and one file each; ``SCHEDULERS`` names them."""

from __future__ import annotations

from hpcgen.backends.schedulers.base import Header, Scheduler
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import MPI_PROGRAMS
from hpcgen.core.support.registry import Registry

__all__ = ["SCHEDULERS", "Header", "Scheduler", "launched_by", "scheduler_for"]

SCHEDULERS: Registry[Scheduler] = Registry(
    "batch system",
    "schedulers",
    {
        "slurm": "hpcgen.backends.schedulers.slurm:Slurm",
        "torque": "hpcgen.backends.schedulers.torque:Torque",
        "pbs": "hpcgen.backends.schedulers.pbs:Pbs",
        "gridengine": "hpcgen.backends.schedulers.gridengine:GridEngine",
        "flux": "hpcgen.backends.schedulers.flux:Flux",
        "lsf": "hpcgen.backends.schedulers.lsf:Lsf",
        "pjm": "hpcgen.backends.schedulers.pjm:Pjm",
        "htcondor": "hpcgen.backends.schedulers.htcondor:HtCondor",
        "none": "hpcgen.backends.schedulers.none:NoScheduler",
    },
)


def scheduler_for(facts: BatchSystem) -> Scheduler:
    """The batch system of a profile; errors as :meth:`Registry.find`."""
    return SCHEDULERS.find(facts.kind, "scheduler.kind")()


def launched_by(launcher: str, facts: BatchSystem) -> Scheduler | None:
    """The batch system whose own launcher a program is, that of the profile first; None for an MPI's own."""
    if launcher in MPI_PROGRAMS:
        return None
    own = scheduler_for(facts)
    others = (SCHEDULERS.find(name)() for name in SCHEDULERS.names())
    return own if own.launcher == launcher else next((each for each in others if each.launcher == launcher), None)
