"""By what one MPI library can take the place of another: its file's name, and the MPICH that Cray's is made from."""

from __future__ import annotations

MPI_LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}
"""The file by which programs find the library of an MPI: its SONAME.

mpich: wiki.mpich.org, MPICH ABI Compatibility Initiative: ``libmpi.so.12``, of Intel MPI, MVAPICH2 and Cray's too.
openmpi: VERSION of open-mpi/ompi, ``libmpi_so_version`` 40:… in 4.0 to 5.0.
"""


def abi_of(flavour: str) -> str:
    """The binary interface of a host's MPI: all but Open MPI descend from MPICH."""
    return "openmpi" if flavour == "openmpi" else "mpich"


_BASES = (((9, 0), "4.1"), ((8, 1), "3.4"), ((8, 0), "3.3"), ((7, 7), "3.2"))
"""As ``MPI_Get_library_version`` says it ("ANL base")."""


def mpich_of(version: str) -> str:
    """The MPICH that a release of Cray MPICH is made from; "" where that is not known."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return next((base for since, base in _BASES if numbers >= since), "")
