"""PETSc: solvers of equations over MPI."""

from __future__ import annotations

import msgspec

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc, mpicxx
from hpcgen.blocks.steps import Environment, Packages
from hpcgen.core.model.image_paths import SCRATCH


class Petsc(MpiLibraryBlock, AutotoolsBlock):
    """PETSc from source, in real double precision, over the image's MPI and BLAS.  Source: https://petsc.org

    Without packages that PETSC would download. It is in ``$PETSC_DIR``; there is no ``PETSC_ARCH``.
    """

    name = "petsc"
    needs = (need("gnu"), need("mpi"), need("blas"))
    library = "libpetsc.so"
    program = "petsc_ranks.c"
    linked_with = ("-lpetsc",)
    fortran_program = "petsc_fortran.F90"
    fortran_linked_with = ("-lpetsc",)

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran interface, which needs compilers and an MPI with Fortran.

        ``complex``: for complex numbers instead of real ones.
        """

        fortran: bool = False
        complex: bool = False

    def packages(self, ctx: Context) -> Packages:
        """Python, in which its configure is written."""
        return Packages(build={each: ["python3"] for each in ("apt", "dnf", "zypper")}, run=gcc_libraries("libstdc++"))

    def environment(self, ctx: Context) -> Environment:
        return msgspec.structs.replace(super().environment(ctx), both={"PETSC_DIR": ctx.prefix})

    def prepare_source(self, ctx: Context) -> list[str]:
        """Where it is compiled, which the makes of all steps are told by these."""
        return [f"export PETSC_DIR={SCRATCH}/{self.name}", "export PETSC_ARCH=hpcgen"]

    def configure(self, ctx: Context) -> str:
        return f'{super().configure(ctx)} --with-blaslapack-lib="$BLAS_LIBS"'

    def settings(self, ctx: Context) -> list[str]:
        """Source: petsc.org, "Configuring PETSc"."""
        fortran = ctx.options.fortran
        flags = " ".join(["-O3", *ctx.flags])
        return [
            f"--with-cc={mpicc(ctx)}",
            f"--with-cxx={mpicxx(ctx)}",
            f"--with-fc={'mpifort' if fortran else '0'}",
            *(f"--{name}OPTFLAGS={flags}" for name in ("C", "CXX", *(["F"] if fortran else []))),
            f"--with-scalar-type={'complex' if ctx.options.complex else 'real'}",
            "--with-debugging=0",
            "--with-shared-libraries=1",
            "--with-x=0",
            "--with-hwloc=0",
        ]

    def long_build(self, ctx: Context) -> str:
        return "about 20 minutes on 2 CPUs"
