"""Kokkos, C++ for all kinds of processors."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.base import Context, need
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Packages


class Kokkos(CMakeLibraryBlock):
    """Kokkos from source for the partition's CPU, serial and with OpenMP.  Source: https://kokkos.org

    ``find_package(Kokkos)`` finds it. Programs for GPUs compile their own Kokkos for the GPU that they target.
    """

    name = "kokkos"
    needs = (need("gnu", ">=8.2"), need("cmake", ">=3.16", build_only=True))
    library = "libkokkoscore.so"
    needs_library = "libgomp.so.1"

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libgomp", "libstdc++"))

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Source: docs of Kokkos, "CMake Keywords"."""
        return {
            "BUILD_SHARED_LIBS": "ON",
            "CMAKE_CXX_FLAGS": " ".join(ctx.flags),
            "Kokkos_ENABLE_SERIAL": "ON",
            "Kokkos_ENABLE_OPENMP": "ON",
        }
