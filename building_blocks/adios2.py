"""ADIOS2: data of simulations, written by all ranks."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.base import Context, need
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc, mpicxx
from hpcgen.blocks.steps import Packages

_OFF = (
    *("AWSSDK", "BZip2", "Blosc2", "CUDA", "Campaign", "Catalyst", "DAOS", "DataMan", "DataSpaces", "Fortran", "HDF5"),
    *("IME", "Kokkos", "LIBPRESSIO", "MGARD", "MHS", "PNG", "Python", "SST", "SZ", "Sodium", "UCX", "ZFP", "ZeroMQ"),
)


class Adios2(MpiLibraryBlock, CMakeLibraryBlock):
    """ADIOS2 from source, for C and C++, over the image's MPI.  Source: https://adios2.readthedocs.io

    With its own formats BP4 and BP5, but without compression and without SST, which sends data to other programs.
    """

    name = "adios2"
    needs = (need("gnu", ">=8"), need("cmake", ">=3.12", build_only=True), need("mpi"))
    library = "libadios2_c_mpi.so"
    program = "adios2_ranks.cpp"
    linked_with = ("-std=c++17", "-DADIOS2_USE_MPI=1", "-ladios2_c_mpi", "-ladios2_c")

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libstdc++"))

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Source: "Advanced" of ADIOS2's "Building ADIOS 2"."""
        return {
            "BUILD_SHARED_LIBS": "ON",
            "BUILD_TESTING": "OFF",
            "ADIOS2_BUILD_EXAMPLES": "OFF",
            "CMAKE_C_COMPILER": mpicc(ctx),
            "CMAKE_CXX_COMPILER": mpicxx(ctx),
            "CMAKE_C_FLAGS": " ".join(ctx.flags),
            "CMAKE_CXX_FLAGS": " ".join(ctx.flags),
            "ADIOS2_USE_MPI": "ON",
            **{f"ADIOS2_USE_{name}": "OFF" for name in _OFF},
        }

    def long_build(self, ctx: Context) -> str:
        return "about half an hour on 2 CPUs"
