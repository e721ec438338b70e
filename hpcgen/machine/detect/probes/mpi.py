"""MPI libraries of the host: where they are, whose they are, and their ABI as the library itself names it.

The ABI is the SONAME, because that is what a program asks for: libmpi.so.12 of the MPICH ABI initiative, libmpi.so.40
of Open MPI 4 and 5. Beside either may lie libmpi_abi.so.1, of the MPI 5 standard. Sources:
https://www.mpich.org/abi/, Open MPI's VERSION files; where vendors install: Intel's, HPE Cray's and the distributions'
packages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD, abi_of, whose
from hpcgen.core.support.templates import table
from hpcgen.machine.detect.closure import SYSTEM
from hpcgen.machine.detect.elf import Library, read_library
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.mpi_library import mpi_library
from hpcgen.machine.detect.probes.batch import offered_pmi
from hpcgen.machine.detect.probes.host_libraries import of_host
from hpcgen.machine.detect.probes.system import loaded
from hpcgen.machine.detect.seen import Seen

_NAME = re.compile(r"libmpi(ch|_[a-z]+(_\d+)?)?\.so\.\d+")
_IN_PATH = re.compile(r"/(?:[a-z]{0,40}mpi(?:ch)?[a-z0-9]{0,40}|hpcx)[/-](?:[A-Za-z]+-)?v?(\d{1,9}(?:\.\d{1,9}){1,9})")
ROOTS = (
    "I_MPI_ROOT",
    "CRAY_MPICH_DIR",
    "MPICH_DIR",
    "MPI_HOME",
    "MPI_ROOT",
    "EBROOTOPENMPI",
    "EBROOTIMPI",
    "EBROOTPSMPI",
)
_BELOW = ("lib-abi-mpich", "lib/release", "lib", "lib64", "intel64/lib/release", "intel64/lib")
_MOST_FOLDERS = 300
_VENDORS_FIRST = ("cray-mpich", "intel", "parastation", "openmpi", "mvapich2", "mpich")
_UNDERSTOOD = {"openmpi": ("pmix",), "intel": ("pmi2",), "mpich": ("pmi2",)}
"""Which of Slurm's an MPI understands as it is usually built; of the others any may do.

Intel MPI opens a libpmix of its own for PMIx, MPICH has PMIx only if it was built with it, Open MPI 5 has nothing else.
"""


class MpiPlaces(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Folders that may have an MPI, and names of modules by its family."""

    folders: list[str]
    modules: dict[str, str]


def _places() -> MpiPlaces:
    return table(Path(__file__).with_suffix(".yaml"), MpiPlaces)


class Installation(msgspec.Struct, frozen=True):
    """One MPI library.

    ``file``, ``folder``, ``root``: the library, the folder that it lies in and that of the whole MPI, as they are
    reached. ``rank``: the smaller, the nearer: 0 is what the environment names, 3 what lies where vendors install.
    """

    file: str
    folder: str
    root: str
    library: Library
    flavour: str
    abi: str
    version: str | None
    version_from: str
    rank: int


def probe(machine: Machine, seen: Seen) -> None:
    """Facts below ``mpi``; other installations are notes."""
    found = installations(machine)
    usable = [
        each
        for each in found
        if (machine.real(each.folder) or each.folder) not in SYSTEM
        and (machine.real(each.file) or "").rsplit("/", 1)[0] not in SYSTEM
    ]
    for each in found:
        if each in usable and (library := standard_library(machine, each.folder)):
            has = f"{library}: {each.flavour} {each.version or 'of unknown version'}"
            seen.notes.append(
                f"{has} also has the binary interface of {whose(STANDARD)}, for which `mpi.abi` is {STANDARD}"
            )
        if not usable or each is not usable[0]:
            said = f"{each.flavour} {each.version or 'of unknown version'}, {each.library.soname} in {each.folder}"
            why = (
                "" if each in usable else "; it is among the system's libraries, which must not be bound into an image"
            )
            seen.notes.append(f"another MPI: {said}{why}")
    if not usable:
        seen.add_unseen(
            "mpi", "no MPI library in the usual folders, in those that the environment names, or next to mpiexec"
        )
        return
    _facts(machine, usable[0], seen)


def standard_library(machine: Machine, folder: str) -> str:
    """The library of the MPI 5 standard's interface in the folder of an MPI, by its SONAME; "" if there is none."""
    path = f"{folder}/{MPI_LIBRARIES[STANDARD]}"
    with machine.blob(path) as blob:
        library = read_library(blob) if blob is not None else None
    return path if library is not None and library.soname == MPI_LIBRARIES[STANDARD] else ""


def installations(machine: Machine) -> list[Installation]:
    """All MPI libraries that are found, the one that jobs most likely use first; each once."""
    found: dict[str, Installation] = {}
    for folder, rank in _folders(machine):
        names = [name for name in machine.names(folder, "libmpi*.so.*") if _NAME.fullmatch(name)]
        for name in sorted(names, key=lambda name: (not name.startswith("libmpi.so."), name)):
            real = machine.real(f"{folder}/{name}")
            if real is None or real in found:
                continue
            if installation := _read(machine, folder, name, rank):
                found[real] = installation
                break
    return sorted(found.values(), key=_order)


def _order(each: Installation) -> tuple[Any, ...]:
    newest = tuple(-int(part) for part in re.findall(r"\d+", each.version or ""))
    # Cray's library under the name that other MPICHs have is the one that can take their place.
    return (
        each.rank,
        _VENDORS_FIRST.index(each.flavour),
        not each.library.soname.startswith("libmpi.so."),
        newest,
        each.file,
    )


def _folders(machine: Machine) -> list[tuple[str, int]]:
    environment = machine.environment
    ranked = [
        (f"{environment[name].rstrip('/')}/{below}", 0) for name in ROOTS if name in environment for below in _BELOW
    ]
    ranked += [
        (folder.rstrip("/"), 1)
        for folder in environment.get("LD_LIBRARY_PATH", "").split(":")
        if folder.startswith("/")
    ]
    for folder in environment.get("PATH", "").split(":"):
        if folder.startswith("/") and folder.endswith("/bin") and machine.is_file(f"{folder}/mpiexec"):
            ranked += [(f"{folder[:-4]}/{below}", 2) for below in _BELOW]
    ranked += [(folder, 3) for pattern in _places().folders for folder in machine.glob(pattern)]
    return [(folder, rank) for folder, rank in dict(reversed(ranked)).items() if folder][::-1][:_MOST_FOLDERS]


def _read(machine: Machine, folder: str, name: str, rank: int) -> Installation | None:
    path = f"{folder}/{name}"
    with machine.blob(path) as blob:
        if blob is None:
            return None
        told = mpi_library(blob)
    if told is None:
        return None
    library, flavour, version, where = told.library, told.flavour, told.version, path
    root = _root(folder)
    if version is None or "." not in version:
        more, elsewhere = _version_elsewhere(machine, root, folder, flavour)
        # The year alone is less than a folder's name may say.
        if version is None or (more or "").startswith(f"{version}."):
            version, where = more, elsewhere
    abi = STANDARD if library.soname == MPI_LIBRARIES[STANDARD] else abi_of(flavour)
    return Installation(path, folder, root, library, flavour, abi, version, where, rank)


def _root(folder: str) -> str:
    for below in ("/lib-abi-mpich", "/lib/release", "/lib64", "/lib"):
        if folder.endswith(below):
            return folder.removesuffix(below) or "/"
    return folder


def _version_elsewhere(machine: Machine, root: str, folder: str, flavour: str) -> tuple[str | None, str]:
    """The version by the package's own description, or by the folder's name."""
    names = {"openmpi": "ompi", "intel": "impi", "mvapich2": "mvapich2"}
    for path in (
        f"{folder}/pkgconfig/{names.get(flavour, 'mpich')}.pc",
        f"{root}/lib/pkgconfig/{names.get(flavour, 'mpich')}.pc",
    ):
        match = re.search(r"^Version:[ \t]*(\d{1,9}(?:\.\d{1,9}){1,9})", machine.text(path) or "", re.MULTILINE)
        if match:
            return match[1], path
    real = machine.real(folder) or folder
    match = _IN_PATH.search(real)
    return (match[1], f"the name of {real}") if match else (None, "")


def _facts(machine: Machine, each: Installation, seen: Seen) -> None:
    how = f"{each.file}, SONAME {each.library.soname}"
    seen.add("mpi.flavour", each.flavour, f"{each.file}, by its strings and dependencies")
    seen.add("mpi.version", each.version, each.version_from)
    seen.add("mpi.abi", each.abi, how)
    seen.add("mpi.root", each.root, each.file)
    folders = _libraries(machine, each, seen.value("fabric.libraries") or [])
    # Intel MPI opens its libfabric by name.
    starts = [each.file, *(path for folder in folders if machine.is_file(path := f"{folder}/libfabric.so.1"))]
    found = of_host(machine, each.root, starts, folders)
    seen.add("mpi.libraries", found.folders, f"{each.file}, and what its libraries need")
    seen.add("mpi.glibc", found.glibc, "GLIBC symbol versions that its libraries need")
    binds = [*found.binds, *_of_launcher(machine, each)]
    seen.add("mpi.binds", binds, "links on the way to the libraries are followed by /.; what the libraries need")
    seen.notes += found.notes
    pattern = re.compile(_places().modules[each.flavour], re.IGNORECASE)
    seen.add("mpi.modules", [name for name in loaded(machine) if pattern.fullmatch(name)], "LOADEDMODULES")
    if not each.version:
        seen.add_unseen("mpi.version", f"{each.file} does not give it, nor does a folder's name")
    _launching(machine, each, seen)


def _libraries(machine: Machine, each: Installation, fabric: list[str]) -> list[str]:
    """The folder of the library, those with what it opens that lie in the same MPI, and those that drive the fabric."""
    more = [f"{each.root}/{below}" for below in ("lib", "libfabric/lib", "opt/mpi/libfabric/lib")]
    return list(dict.fromkeys([each.folder, *(path for path in more if machine.is_dir(path)), *fabric]))


def _of_launcher(machine: Machine, each: Installation) -> list[dict[str, str | bool]]:
    """Where Cray's PMI finds what Slurm tells each job: slurmd's folder, in ``mpi_cray_shasta``."""
    if each.flavour != "cray-mpich" or not _by_shasta(machine):
        return []
    said = re.search(
        r"^SlurmdSpoolDir[ \t]*=[ \t]*(/[^\s%]+)$", machine.output("scontrol-config").text or "", re.MULTILINE
    )
    spool = said[1] if said else "/var/spool/slurmd"
    return [{"source": spool, "target": spool}] if machine.is_dir(spool) else []


def _by_shasta(machine: Machine) -> bool:
    return "cray_shasta" in (machine.output("srun-mpi-list").text or "")


def _launching(machine: Machine, each: Installation, seen: Seen) -> None:
    """srun where it speaks a PMI that the library understands, which comes first; else what the MPI brings."""
    slurm = seen.value("scheduler.kind") == "slurm"
    if slurm and each.flavour == "cray-mpich" and _by_shasta(machine):
        seen.add("mpi.launcher", "srun", machine.how("srun-mpi-list"))
        seen.add_unseen("mpi.pmi", "srun offers cray_shasta, Cray's own, which is its default where Cray's MPI is")
        return
    offered = offered_pmi(machine) if slurm else []
    understood = _UNDERSTOOD.get(each.flavour, offered)
    if not set(offered).isdisjoint(understood):
        how = machine.how("srun-mpi-list")
        seen.add("mpi.launcher", "srun", how)
        seen.add("mpi.pmi", sorted(offered, key=lambda name: name not in understood), how)
        return
    own = "mpirun" if each.flavour == "openmpi" else "mpiexec"
    for folder in (f"{each.root}/bin", *machine.environment.get("PATH", "").split(":")):
        if folder.startswith("/") and machine.is_file(f"{folder}/{own}"):
            seen.add("mpi.launcher", own, f"{folder}/{own}")
            seen.add("mpi.pmi", ["pmix" if each.flavour == "openmpi" else "hydra"], f"{folder}/{own}")
            return
    seen.add_unseen(
        "mpi.launcher", f"srun offers no PMI that {each.flavour} is known to understand, nor is there {own}"
    )
