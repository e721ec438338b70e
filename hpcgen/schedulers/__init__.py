"""Batch systems: what a job script says at its top, and where it starts. One small class each."""

from __future__ import annotations

from hpcgen.model.site import Scheduler as SiteScheduler
from hpcgen.schedulers.base import Direct, Header, NoScheduler, Scheduler

__all__ = ["Direct", "Header", "Scheduler", "scheduler_for"]


def scheduler_for(site_scheduler: SiteScheduler) -> Scheduler:
    """The batch system of a profile."""
    if site_scheduler.kind == "slurm":
        from hpcgen.schedulers.slurm import Slurm

        return Slurm()
    if site_scheduler.kind == "none":
        return NoScheduler()
    from hpcgen.schedulers.torque import Pbs, Torque

    return Torque() if site_scheduler.kind == "torque" else Pbs()
