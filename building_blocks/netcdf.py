"""NetCDF for C and Fortran, over MPI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcgen.blocks.base import BlockOptions, Context, Situation, need
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc
from hpcgen.blocks.steps import Input, Packages, Run, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH

_OFF = ("DAP", "BYTERANGE", "NCZARR", "LIBXML2", "PLUGINS", "HDF4", "TESTS", "EXAMPLES")


def _with_pnetcdf(situation: Situation) -> bool:
    return bool(situation.options.pnetcdf)


class Netcdf(MpiLibraryBlock, CMakeLibraryBlock):
    """NetCDF from source, over parallel HDF5 and MPI.  Source: https://www.unidata.ucar.edu/software/netcdf

    Without access to servers (DAP) and clouds. The Fortran interface comes from a separate archive and has the same
    prefix.
    """

    name = "netcdf"
    needs = (
        need("gnu"),
        need("cmake", ">=3.20", build_only=True),
        need("mpi"),
        need("hdf5"),
        need("pnetcdf", when=_with_pnetcdf),
    )
    library = "libnetcdf.so"
    program = "netcdf_ranks.c"
    linked_with = ("-lnetcdf",)
    known_by = ("NETCDF", "NETCDF_DIR", "NETCDF_HOME", "NETCDF_ROOT")
    fortran_program = "netcdf_fortran.f90"
    fortran_linked_with = ("-lnetcdff", "-lnetcdf")

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran interface, which needs compilers and an MPI with Fortran.

        ``pnetcdf``: also writes files of the classic formats in parallel, by PnetCDF.
        """

        fortran: bool = False
        pnetcdf: bool = False

    def inputs(self, ctx: Context) -> list[Input]:
        return [ctx.archive(), *([ctx.archive("fortran")] if ctx.options.fortran else [])]

    def packages(self, ctx: Context) -> Packages:
        """m4, which writes some of its sources."""
        names = {each: ["m4", "zlib-devel"] for each in ("dnf", "zypper")}
        return Packages(build={"apt": ["m4", "zlib1g-dev"], **names})

    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Source: NetCDF's CMakeLists.txt; the names of its options begin with NETCDF_ from 4.9.3 on."""
        before = "NETCDF_ENABLE" if ctx.me.at_least("4.9.3") else "ENABLE"
        return {
            "BUILD_SHARED_LIBS": "ON",
            "BUILD_TESTING": "OFF",
            "CMAKE_C_COMPILER": mpicc(ctx),
            "CMAKE_C_FLAGS": " ".join(ctx.flags),
            "HDF5_ROOT": ctx.use("hdf5").prefix,
            "HDF5_PREFER_PARALLEL": "TRUE",
            f"{before}_PARALLEL4": "ON",
            f"{before}_PNETCDF": "ON" if ctx.options.pnetcdf else "OFF",
            **{f"{before}_{name}": "OFF" for name in _OFF},
        }

    def test(self, ctx: Context) -> list[Test]:
        """Beside the tests of the library: Fortran's is linked with it."""
        tests = super().test(ctx)
        if ctx.options.fortran:
            libraries = command("ldd", f"{ctx.prefix}/lib/libnetcdff.so")
            tests.append(Test("Fortran", libraries, expect=f"{ctx.prefix}/lib/libnetcdf.so"))
        return tests

    def fortran_library(self, ctx: Context) -> Iterable[Run]:
        """NetCDF-Fortran by the compilers of NetCDF-C, as its own instructions say."""
        source, flags = f"{SCRATCH}/netcdf-fortran", " ".join(["-O2", *ctx.flags])
        words = [
            *("CC=mpicc", "FC=mpifort", "F77=mpifort"),
            *(f"{name}={flags}" for name in ("CFLAGS", "FCFLAGS", "FFLAGS")),
            f"CPPFLAGS=-I{ctx.prefix}/include",
            f"LDFLAGS=-L{ctx.prefix}/lib",
            "--disable-static",
        ]
        yield run("fetch Fortran's", ctx.unpack(ctx.archive("fortran"), source))
        yield run(
            "compile Fortran's",
            command("cd", source),
            command("./configure", f"--prefix={ctx.prefix}", *words),
            'make -j "$(nproc)"',
            command("make", "install"),
            "cd /",
            command("rm", "-rf", source),
            joins="previous",
        )
