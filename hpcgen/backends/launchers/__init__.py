"""What starts the ranks of a host's MPI. One class and one file each; ``LAUNCHERS`` names them.

A batch system's own launcher is described by the batch system's class, and named by its program: ``srun``, ``flux``.
"""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.backends.schedulers import SCHEDULERS, launched_by
from hpcgen.core.errors import UnknownNameError, did_you_mean
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import MPI_PROGRAMS, HostMpi
from hpcgen.core.support.registry import Registry

__all__ = ["LAUNCHERS", "Launcher", "knows_launcher", "launcher_names", "launcher_of"]

LAUNCHERS: Registry[Launcher] = Registry(
    "launcher",
    "launchers",
    {
        "hydra": "hpcgen.backends.launchers.hydra:Hydra",
        "prte": "hpcgen.backends.launchers.prte:Prte",
        "pals": "hpcgen.backends.launchers.pals:Pals",
        "ibrun": "hpcgen.backends.launchers.ibrun:Ibrun",
        "jsrun": "hpcgen.backends.launchers.jsrun:Jsrun",
        "ple": "hpcgen.backends.launchers.ple:Ple",
    },
)

_OF_FLAVOUR = {"openmpi": "prte", "cray-mpich": "pals"}


def launcher_of(mpi: HostMpi, batch: BatchSystem) -> Launcher:
    """What starts an MPI's ranks. UnknownNameError: nothing is called so."""
    name = mpi.launcher
    if name in MPI_PROGRAMS:
        return LAUNCHERS.find(_OF_FLAVOUR.get(mpi.flavour, "hydra"))(mpi, batch, name)
    if name in LAUNCHERS:
        return LAUNCHERS.find(name)(mpi, batch)
    own = launched_by(name, batch)
    if own is None:
        message = f"no launcher is called {name!r}"
        raise UnknownNameError(message, "mpi.launcher", remedy=did_you_mean(name, launcher_names()))
    from hpcgen.backends.launchers.batch import BatchLauncher

    return BatchLauncher(mpi, batch, own)


def knows_launcher(name: str, batch: BatchSystem) -> bool:
    """Whether a profile can name it."""
    return name in MPI_PROGRAMS or name in LAUNCHERS or launched_by(name, batch) is not None


def launcher_names() -> list[str]:
    """Everything that a profile can name in ``mpi.launcher``."""
    own = (SCHEDULERS.find(name).launcher for name in SCHEDULERS.names())
    return [*MPI_PROGRAMS, *LAUNCHERS.names(), *dict.fromkeys(filter(None, own))]
