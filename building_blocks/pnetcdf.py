"""PnetCDF: files of netCDF's classic formats, written by all ranks."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc
from hpcgen.blocks.steps import Packages


class Pnetcdf(MpiLibraryBlock, AutotoolsBlock):
    """PnetCDF from source, over the image's MPI.  Source: https://parallel-netcdf.github.io

    There is no serial version: without MPI, NetCDF writes the same files.
    """

    name = "pnetcdf"
    needs = (need("gnu", build_only=True), need("mpi"))
    library = "libpnetcdf.so"
    program = "pnetcdf_ranks.c"
    linked_with = ("-lpnetcdf",)
    known_by = ("PNETCDF", "PNETCDF_DIR")
    fortran_program = "pnetcdf_fortran.f90"
    fortran_linked_with = ("-lpnetcdf",)

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran interface, which needs compilers and an MPI with Fortran."""

        fortran: bool = False

    def packages(self, ctx: Context) -> Packages:
        """m4 and Perl, which write some of its sources."""
        return Packages(build={each: ["m4", "perl"] for each in ("apt", "dnf", "zypper")})

    def settings(self, ctx: Context) -> list[str]:
        """Source: PnetCDF's INSTALL. Programs that help it to be built are not of MPI."""
        fortran = ["--disable-fortran"]
        if ctx.options.fortran:
            fortran = ["MPIF77=mpifort", "MPIF90=mpifort"]
        return [
            f"MPICC={mpicc(ctx)}",
            "SEQ_CC=gcc",
            f"CFLAGS={' '.join(['-O2', *ctx.flags])}",
            *fortran,
            "--disable-cxx",
            "--enable-shared",
            "--disable-static",
        ]
