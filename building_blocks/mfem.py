"""MFEM, finite elements over MPI."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.base import Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.standard_mpi import linked, mpicxx
from hpcgen.blocks.steps import Packages


class Mfem(CMakeLibraryBlock):
    """MFEM from source, over the image's MPI, with hypre and METIS.  Source: https://mfem.org

    METIS is the distribution's serial package. ``find_package(MFEM)`` finds it.
    """

    name = "mfem"
    needs = (need("gnu"), need("cmake", ">=3.8", build_only=True), need("mpi"), need("hypre"))
    library = "libmfem.so"
    needs_library = "libHYPRE"

    def packages(self, ctx: Context) -> Packages:
        """METIS, and the compiler's run-time libraries."""
        metis = {"apt": ["libmetis-dev"], "dnf": ["metis-devel"], "zypper": ["metis-devel"]}
        libraries = gcc_libraries("libstdc++")
        return Packages(build=metis, run={each: [*libraries.get(each, []), *names] for each, names in metis.items()})

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Source: MFEM's INSTALL, "Building with CMake"."""
        return {
            "BUILD_SHARED_LIBS": "ON",
            "MFEM_USE_MPI": "ON",
            "MFEM_USE_METIS_5": "ON",
            "CMAKE_CXX_COMPILER": mpicxx(ctx),
            "CMAKE_CXX_FLAGS": " ".join(ctx.flags),
            "HYPRE_DIR": ctx.use("hypre").prefix,
            "METIS_DIR": "/usr",
        }

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)
