"""A machine looked at for one profile: where several MPIs are installed, it is the profile's that counts."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD
from hpcgen.core.model.site import MPI_LAUNCHERS, Site
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes.batch import offered_pmi
from hpcgen.machine.detect.probes.mpi import ROOTS, standard_library
from hpcgen.machine.detect.seen import Seen


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
