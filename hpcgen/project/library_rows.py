"""What builds call a library, and what brings it into an image: ``library_rows.yaml``, which has its sources."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from hpcgen.core.support.templates import table


class LibraryRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A library by the names that builds have for it, in any case of their letters.

    ``apt``, ``dnf``, ``zypper``: packages with its headers; an empty one is the same as Debian's. ``block``: brings
    it in their place; ``over_mpi``: the block that does so over the image's MPI, where the build uses MPI or the
    distribution has none. ``bring``: what the user has to do, where neither does. ``none``: nothing has to be there.
    """

    names: str
    apt: str = ""
    dnf: str = ""
    zypper: str = ""
    block: str = ""
    bring: str = ""
    over_mpi: str = ""
    none: bool = False

    def to_bring(self) -> str:
        """``bring`` with what is the same for many libraries."""
        return self.bring.format(
            own_mpi="the distribution's is linked with the distribution's own Open MPI, which is not the image's: ",
            compile="compile it in `build` before the program, from a `git` or an archive",
        )


class LibraryTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The tables, as their comments say what each is."""

    rows: list[LibraryRow]
    tools: list[LibraryRow]
    boost_parts: list[str]


def libraries() -> LibraryTable:
    """The table of libraries, of tools with several names, and of the parts of Boost."""
    return table(Path(__file__).with_suffix(".yaml"), LibraryTable)


DRAWS_MPI = re.compile(
    r"lib[\w.+-]*-(openmpi|mpich|mpi|parallel)(-[\w.+-]+)?|libp(netcdf|etsc|tscotch)[\w.+-]*-dev|"
    r"lib(scalapack|hypre|slepc|mumps|p4est|adios|elpa|sundials|boost-all|vtk\d?|trilinos|dolfin|superlu-dist)[\w.+-]*-dev|"
    r"(hdf5|netcdf[\w+-]*|fftw|boost|scalapack|petsc|hypre)-(openmpi|mpich)(-[\w.+-]+)?|python3-(mpi4py|petsc4py|dolfin\w*)"
)
"""Packages that draw in the distribution's own MPI. Source: package lists of Debian 12; names for dnf from memory."""


def block_for(package: str) -> str:
    """The block that brings over the image's MPI what such a package has over its own; empty without one."""
    blocks = ("hdf5", "pnetcdf", "netcdf", "fftw", "petsc", "boost", "scalapack", "hypre", "adios2")
    # "pnetcdf" has "netcdf" in it; Debian's packages of ADIOS2 are libadios-dev and libadios2-….
    return next((block for block in blocks if block.rstrip("2") in package), "")


OVER_SERIAL_HDF5 = ("libcgns-dev", "libnetcdf-c++4-dev")
"""Packages over the distribution's serial HDF5: a program that has one cannot have another HDF5 beside it."""

BOOST_HEADERS = ("libboost-dev", "boost-devel", "boost-devel")
"""Of Boost without the parts that are compiled. libboost-all-dev draws in the distribution's Open MPI."""
