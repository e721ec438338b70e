"""Batch systems: what a job script says at its top, and where it starts. One small class each."""

from __future__ import annotations

from hpcgen.launch.schedulers.base import Direct, Header, NoScheduler, Scheduler
from hpcgen.model.site import Scheduler as SiteScheduler

__all__ = ["Direct", "Header", "Scheduler", "scheduler_for"]


def scheduler_for(site_scheduler: SiteScheduler) -> Scheduler:
    """The batch system of a profile."""
    if site_scheduler.kind == "slurm":
        from hpcgen.launch.schedulers.slurm import Slurm

        return Slurm()
    if site_scheduler.kind == "none":
        return NoScheduler()
    from hpcgen.launch.schedulers.torque import Pbs, Torque

    return Torque() if site_scheduler.kind == "torque" else Pbs()
