"""HDF5 over MPI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc
from hpcgen.blocks.steps import Packages, Run, command, run


class Hdf5(MpiLibraryBlock, CMakeLibraryBlock):
    """Parallel HDF5 from source, over the image's MPI: all ranks can write one file.  Source: https://www.hdfgroup.org

    The distribution's parallel HDF5 is linked with the distribution's own MPI; for serial HDF5 use its package. C, and
    Fortran on request; no C++, which HDF5 does not support with MPI. Compression is zlib's.
    """

    name = "hdf5"
    needs = (need("gnu"), need("cmake", ">=3.18", build_only=True), need("mpi"))
    library = "libhdf5.so"
    program = "hdf5_ranks.c"
    linked_with = ("-lhdf5",)
    fortran_program = "hdf5_fortran.f90"
    fortran_linked_with = ("-lhdf5_fortran", "-lhdf5")
    known_by = ("HDF5_DIR", "HDF5_HOME", "HDF5_ROOT")

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran interface, which needs compilers and an MPI with Fortran."""

        fortran: bool = False

    def packages(self, ctx: Context) -> Packages:
        return Packages(
            build={"apt": ["zlib1g-dev"], "dnf": ["zlib-devel"], "zypper": ["zlib-devel"]},
            run={"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]},
        )

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Source: HDF5's release_docs/INSTALL_CMake.txt; the wrapper as compiler, so that no other MPI is found."""
        fortran = ctx.options.fortran
        return {
            **({"CMAKE_Fortran_COMPILER": "mpifort"} if fortran else {}),
            "BUILD_SHARED_LIBS": "ON",
            "BUILD_STATIC_LIBS": "OFF",
            "BUILD_TESTING": "OFF",
            "CMAKE_C_COMPILER": mpicc(ctx),
            "CMAKE_C_FLAGS": " ".join(ctx.flags),
            "HDF5_BUILD_CPP_LIB": "OFF",
            "HDF5_BUILD_EXAMPLES": "OFF",
            "HDF5_BUILD_FORTRAN": "ON" if fortran else "OFF",
            "HDF5_BUILD_JAVA": "OFF",
            "HDF5_ENABLE_PARALLEL": "ON",
            "HDF5_ENABLE_SZIP_SUPPORT": "OFF",
            "HDF5_ENABLE_Z_LIB_SUPPORT": "ON",
            "HDF5_INSTALL_CMAKE_DIR": "lib/cmake/hdf5",
        }

    def fortran_library(self, ctx: Context) -> Iterable[Run]:
        """Its modules also where makefiles look for them: CMake's build puts them into a folder of their own."""
        words = ["find", f"{ctx.prefix}/mod", "-name", "*.mod", "-exec", "cp", "-t", f"{ctx.prefix}/include", "{}", "+"]
        yield run("modules of Fortran among the headers", command(*words), joins="previous")
