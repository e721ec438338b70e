"""By what one MPI library can take the place of another: its file's name, and the MPICH that Cray's is made from."""

from __future__ import annotations

from hpcgen.core.model.host_mpi import HostMpi

STANDARD = "mpi5"
"""The binary interface of the MPI 5.0 standard, which is no family's own."""

MPI_LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", STANDARD: "libmpi_abi.so.1"}
"""The file by which programs find the library of an MPI: its SONAME.

mpich: wiki.mpich.org, MPICH ABI Compatibility Initiative: ``libmpi.so.12``, of Intel MPI, MVAPICH2 and Cray's too.
openmpi: VERSION of open-mpi/ompi, ``libmpi_so_version`` 40:… in 4.0 to 5.0.
mpi5: VERSION of open-mpi/ompi@8efebee, ``libmpi_abi_so_version``, which says that MPICH and Open MPI agreed on it; the
standard (MPI 5.0, chapter 20) names no file.
"""

STANDARD_SINCE = {"mpich": (5, 0), "intel": (2021, 17), "openmpi": (6, 0)}
"""The first release of an MPI that can have the library of the standard's interface; of the others it is not known.

mpich: CHANGES and configure.ac of pmodels/mpich at v5.0.0: where it was configured with ``--enable-mpi-abi``. intel:
the wheels of impi-rt: 2021.17.2 has it, 2021.16.2 has not. openmpi: docs/building-apps/mpi-forum-abi.rst of
open-mpi/ompi.
"""

OTHERWISE_NAMED = ("5.0.0", "5.0.1")
"""Releases of MPICH that call that library ``libmpi_abi.so.0``, unless somebody mended it.

Seen in their wheels, whose ``.post1`` are mended; pmodels/mpich@bb167f1 is the correction.
"""

MPI_PMI = {"mpich": ("pmi2", "pmi"), "openmpi": ("pmix",)}
"""How a batch system's launcher tells the ranks of an image's MPI about each other, whatever its release.

Slurm's ``pmi2`` serves the PMI-1 of MPICH and Intel MPI; Open MPI's image has PMIx alone.
"""

PLUGIN_FOLDERS = ("FI_PROVIDER_PATH", "UCX_MODULE_DIR")
"""Where libfabric and UCX look for their plugins. Sources: fi_provider(7); ``ucx_info -cf``."""

INTEL_FILES = ("I_MPI_OFI_LIBRARY", "I_MPI_PMI_LIBRARY")
"""By these modules of a host name libraries of its own.

Seen with 2021.17: without that libfabric MPI_Init fails, without that library of a PMI every rank complains.
"""

_FOLDERS = ("BINDIR", "DATADIR", "EXEC_PREFIX", "LIBDIR", "PKGDATADIR", "PKGLIBDIR", "PREFIX", "SYSCONFDIR")
OPEN_MPI_FILES = (
    *(f"{library}_{folder}" for library in ("OPAL", "PMIX", "PRTE") for folder in _FOLDERS),
    *(f"{library}_MCA_mca_base_component_path" for library in ("OMPI", "PMIX", "PRTE")),
    *("PMIX_INSTALL_PREFIX", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_osc", "OMPI_MCA_pml"),
)
"""By these a relocated installation says where its files are, and which of its plugins it takes; modules of HPC-X and
of sites set some of them.

Seen with Open MPI 4.1.4: with OPAL_PREFIX of a folder that is not there MPI_Init fails; with the wheel of 5.0.11: with
a pml that it has no plugin for. Source: opal/mca/installdirs/env of open-mpi/ompi, pinstalldirs/env of
openpmix/openpmix, and the same of PRRTE.
"""

HOST_SETTINGS = {
    "intel": (*INTEL_FILES, *PLUGIN_FOLDERS),
    "openmpi": (*OPEN_MPI_FILES, *PLUGIN_FOLDERS),
    **dict.fromkeys(("mpich", "mvapich2", "mvapich"), PLUGIN_FOLDERS),
}
"""Variables of a host that lead an MPI to files of another installation, by what software it is."""


def whose(abi: str) -> str:
    """Whose a binary interface is, for people."""
    return "the MPI 5 standard" if abi == STANDARD else abi


def abi_of(flavour: str) -> str:
    """The binary interface that is an MPI's own: all but Open MPI descend from MPICH."""
    return "openmpi" if flavour == "openmpi" else "mpich"


def wanted_abi(host: HostMpi) -> str:
    """The binary interface that an image's MPI must have beside a host's; its family's, if that only starts ranks."""
    return host.abi if host.abi != STANDARD or host.shown_inside else abi_of(host.flavour)


_BASES = (((9, 0), "4.1"), ((8, 1), "3.4"), ((8, 0), "3.3"), ((7, 7), "3.2"))
"""As ``MPI_Get_library_version`` says it ("ANL base")."""


def mpich_of(version: str) -> str:
    """The MPICH that a release of Cray MPICH is made from; "" where that is not known."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return next((base for since, base in _BASES if numbers >= since), "")


def standard_of(flavour: str, version: str) -> tuple[int, int] | None:
    """The MPI standard whose functions a library certainly has; None where that is not known.

    MPICH has those of MPI 4.0 since 4.0.0, and those of 3.1 since 3.2. MVAPICH2 2.3 is made from MPICH 3.2, MVAPICH 3.0
    from 3.4; MVAPICH 4 offers 4.1. Sources: CHANGES of pmodels/mpich; MVAPICH's change log, Spack's mvapich/package.py;
    Intel MPI 2019 reports 3.1 (MPI_Get_version).
    """
    if flavour == "cray-mpich":
        flavour, version = "mpich", mpich_of(version)
    major = next((int(part) for part in version.split(".")[:1] if part.isdigit()), 0)
    if flavour == "mpich" and major:
        return (4, 0) if major >= 4 else (3, 1)
    if flavour == "mvapich2":
        return (4, 0) if major >= 4 else (3, 1)
    if flavour == "intel" and 2017 <= major < 2021:
        return (3, 1)
    return None
