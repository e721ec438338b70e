"""FFTW: Fourier transforms, also over MPI."""

from __future__ import annotations

from typing import Literal

from hpcgen.backends.hardware.microarchitecture import nearest
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicc
from hpcgen.blocks.steps import Packages, Part, command

KERNELS = {
    "x86_64_v4": "sse2 avx avx2 avx512",
    "x86_64_v3": "sse2 avx avx2",
    "sandybridge": "sse2 avx",
    "x86_64": "sse2",
    "aarch64": "neon",
    "power8le": "vsx",
}
"""Kernels for a CPU by archspec's name, and for its descendants. Source: FFTW's manual, "Installation on Unix"."""


class Fftw(MpiLibraryBlock, AutotoolsBlock):
    """FFTW from source, with OpenMP and over the image's MPI.  Source: https://www.fftw.org

    In double and single precision, each with threads. The distribution's libfftw3-mpi is linked with the distribution's
    own MPI; if you do not need MPI, its package is just as good.
    """

    name = "fftw"
    needs = (need("gnu"), need("mpi"))
    library = "libfftw3_mpi.so"
    program = "fftw_ranks.c"
    known_by = ("FFTW_DIR", "FFTW_HOME", "FFTW_ROOT")
    linked_with = ("-lfftw3_mpi", "-lfftw3", "-lm")

    class Options(BlockOptions, frozen=True):
        """``precision``: ``double`` alone (libfftw3), or ``both``, with single (libfftw3f)."""

        precision: Literal["both", "double"] = "both"

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libgomp"))

    def prepare_source(self, ctx: Context) -> list[str]:
        """Single precision is compiled and installed first, from the same folder."""
        if ctx.options.precision == "double":
            return []
        return [
            f"{self.configure(ctx)} --enable-single",
            'make -j "$(nproc)"',
            command("make", "install"),
            command("make", "distclean"),
        ]

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Without its files for CMake, which lack one that only a build by CMake makes: ``find_package`` would stop."""
        return [*super().install(ctx, source), command("rm", "-rf", f"{ctx.prefix}/lib/cmake")]

    def settings(self, ctx: Context) -> list[str]:
        kernels = nearest(ctx.facts.partition.cpu.target, KERNELS).split()
        return [
            f"MPICC={mpicc(ctx)}",
            f"CFLAGS={' '.join(['-O3', '-fomit-frame-pointer', '-fstrict-aliasing', *ctx.flags])}",
            "--enable-mpi",
            "--enable-openmp",
            "--enable-threads",
            "--enable-shared",
            "--disable-static",
            "--disable-doc",
            *(f"--enable-{name}" for name in kernels),
        ]
