"""hypre, solvers of linear systems over MPI."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.base import Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.standard_mpi import linked, mpicc, mpicxx
from hpcgen.blocks.steps import Packages


class Hypre(CMakeLibraryBlock):
    """hypre from source, over the image's MPI.  Source: https://github.com/hypre-space/hypre

    The distribution's package is linked with the distribution's own MPI. BLAS and LAPACK are hypre's own copies.
    """

    name = "hypre"
    needs = (need("gnu"), need("cmake", ">=3.13", build_only=True), need("mpi"))
    library = "libHYPRE.so"
    needs_library = "libmpi"
    folder = "src"

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libstdc++"))

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """The wrappers as compilers, so that no search finds another MPI."""
        return {
            "BUILD_SHARED_LIBS": "ON",
            "HYPRE_ENABLE_SHARED": "ON",
            "CMAKE_C_COMPILER": mpicc(ctx),
            "CMAKE_CXX_COMPILER": mpicxx(ctx),
            "CMAKE_C_FLAGS": " ".join(ctx.flags),
        }

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)
