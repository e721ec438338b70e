"""ScaLAPACK: dense linear algebra on all ranks."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.gcc_packages import gcc_compilers
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc
from hpcgen.blocks.steps import Packages, Part, command


class Scalapack(MpiLibraryBlock, AutotoolsBlock):
    """ScaLAPACK from source, over the image's MPI and BLAS.  Source: https://www.netlib.org/scalapack/

    Built with its own Makefile: its Fortran code calls MPI only through its C code, so MPI's Fortran bindings, which
    its CMakeLists.txt requires, are not needed. MKL includes a ScaLAPACK too, chosen by its link line.
    """

    name = "scalapack"
    needs = (need("gnu"), need("mpi"), need("blas"))
    library = "libscalapack.so"
    program = "scalapack_ranks.c"
    linked_with = ("-lscalapack", "-lm")

    def packages(self, ctx: Context) -> Packages:
        """The Fortran compiler and its library."""
        values = ctx.use("gnu").release.values
        return Packages(
            build=gcc_compilers(str(values["suffix"]), fortran=True),
            run={
                "apt": [str(values.get("libgfortran", "libgfortran5"))],
                "dnf": ["libgfortran"],
                "zypper": ["libgfortran5"],
            },
        )

    def configure(self, ctx: Context) -> str:
        return command("cp", "SLmake.inc.example", "SLmake.inc")

    def make(self, ctx: Context, source: str) -> str:
        """One file at a time: all parts write into one archive. GCC 14 takes its C for errors unless it is old C."""
        flags = " ".join(["-O3", "-fPIC", *ctx.flags])
        fortran = " -fallow-argument-mismatch" if ctx.use("gnu").at_least("10") else ""
        words = [
            f"CC={mpicc(ctx)}",
            f"FC=/usr/bin/gfortran{ctx.use('gnu').release.values['suffix']}",
            f"FCFLAGS={flags}{fortran}",
            f"NOOPT=-O0 -fPIC{fortran}",
            *(f"{name}={flags} -std=gnu89" for name in ("CCFLAGS", "CFLAGS")),
        ]
        return command("make", "-C", source, "lib", *words)

    def install(self, ctx: Context, source: str) -> list[Part]:
        """A shared library of all."""
        library = f"{ctx.prefix}/lib/{self.library}"
        link = command(mpicc(ctx), "-shared", f"-Wl,-soname,{self.library}", "-o", library)
        archive = f"-Wl,--whole-archive {source}/libscalapack.a -Wl,--no-whole-archive"
        return [
            command("mkdir", "-p", f"{ctx.prefix}/lib"),
            f"{link} {archive} $BLAS_LIBS -lgfortran -lm",
            command("rm", "-rf", source),
        ]
