"""A machine looked at for one profile: where several MPIs are installed, it is the profile's that counts."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD
from hpcgen.core.model.site import MPI_LAUNCHERS, Partition, Site
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes.batch import offered_pmi
from hpcgen.machine.detect.probes.mpi import ROOTS, standard_library
from hpcgen.machine.detect.seen import NODE, Seen
from hpcgen.machine.doctor.values import by_model, by_number, by_size, by_target


def seen_for(machine: Machine, site: Site) -> Seen:
    """Everything that can be seen of a machine, the MPI being the one that the profile names."""
    mpi = site.mpi
    if mpi is not None and mpi.root is not None:
        for name in ROOTS:
            machine.environment.pop(name, None)
        machine.environment["MPI_ROOT"] = mpi.root
        machine.environment["LD_LIBRARY_PATH"] = ":".join(mpi.libraries)
    seen = detect(machine)
    if mpi is not None and mpi.launcher not in MPI_LAUNCHERS and machine.output("srun-mpi-list").text:
        # All that is offered, whether the MPI is known to understand it or not.
        seen.add("mpi.pmi", offered_pmi(machine), machine.how("srun-mpi-list"))
    if mpi is not None and mpi.root is None:
        _forget_mpi(seen, "the profile has no mpi.root, so it is unclear which MPI is meant")
    elif mpi is not None and mpi.root is not None and not _is_that_mpi(machine, seen, [mpi.root, *mpi.libraries]):
        version, root = seen.value("mpi.version") or "of unknown version", seen.value("mpi.root")
        _forget_mpi(seen, f"the MPI that was found is another one: {version} in {root}")
    elif mpi is not None and mpi.abi == STANDARD:
        _see_standard(machine, seen, mpi.libraries)
    return seen


def _see_standard(machine: Machine, seen: Seen, folders: Iterable[str]) -> None:
    """That the MPI also has the standard's interface, where the profile names that and not the family's own."""
    if library := next(filter(None, (standard_library(machine, folder) for folder in folders)), ""):
        seen.add("mpi.abi", STANDARD, f"{library}, SONAME {MPI_LIBRARIES[STANDARD]}")


def _is_that_mpi(machine: Machine, seen: Seen, places: Iterable[str]) -> bool:
    """Whether the seen MPI lies where the profile has its own, whatever links lead there."""
    found = seen.value("mpi.root")
    if found is None:
        return True
    real = machine.real(found) or found
    return any(f"{real}/".startswith(f"{machine.real(place) or place}/") for place in places)


def _forget_mpi(seen: Seen, why: str) -> None:
    """Another MPI says nothing of the profile's; where it lies is worth knowing."""
    for path in [path for path in seen.facts if path.startswith("mpi.") and path not in ("mpi.pmi", "mpi.root")]:
        del seen.facts[path]
    seen.unseen["mpi"] = why


# Which partition of a profile a node belongs to.


def which_partition(site: Site, seen: Seen, asked: str | None, queue: str) -> tuple[str, str]:
    """The partition, and why it is taken to be that one.

    Parameters
    ----------
    asked: the name that somebody gave.
    queue: what the batch system calls the job's partition; "" outside of a job.

    Raises
    ------
    UnknownNameError: the profile has no partition of the name that was given.
    """
    known = list(site.partitions)
    if asked is not None:
        return site.known_partition(asked), "asked for"
    queues = {name: [name, *(each.name for each in site.partitions[name].queues)] for name in known}
    of_queue = [name for name in known if queue and queue in queues[name]]
    if len(of_queue) == 1:
        return of_queue[0], f"the job runs in {queue}"
    if len(known) == 1:
        return known[0], "the profile has no other"
    candidates = of_queue or known
    best = max(candidates, key=lambda name: (fit(site.partitions[name], seen), name == site.default_partition))
    return best, f"the best match of {len(candidates)} by CPU, GPU and memory"


def fit(partition: Partition, seen: Seen) -> int:
    """How well the seen node fits; what tells partitions apart counts most."""

    def value(name: str) -> object:
        return seen.value(f"{NODE}.{name}")

    points = 0
    if (target := value("cpu.target")) is not None:
        points += {None: 8, "higher": 3}.get(by_target(partition.cpu.target, target), 0)
    if (cores := value("cpu.cores")) is not None and by_number(partition.cpu.cores, cores) is None:
        points += 4
    if (memory := value("memory.total_gb")) is not None and by_size(partition.memory.total_gb, memory) is None:
        points += 3
    if (sockets := value("cpu.sockets")) is not None and by_number(partition.cpu.sockets, sockets) is None:
        points += 1
    model = value("gpu.model")
    if (partition.gpu is not None) == (model is not None or value("gpu.vendor") is not None):
        points += 6
    if partition.gpu is not None and model is not None and by_model(partition.gpu.model, model) is None:
        points += 4
    return points
