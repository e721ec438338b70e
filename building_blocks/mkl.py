"""Intel's Math Kernel Library."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.microarchitecture import vendor
from hpcgen.blocks.base import Block, Context, Facts, need
from hpcgen.blocks.capabilities import INTEL_SIMPLIFIED, Capabilities
from hpcgen.blocks.prefix_wheels import python_to_unpack, unpack_wheels
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.model.image_paths import SCRATCH

UNUSED = ("intel-cmplr-lib-ur", "intel-openmp", "tbb", "tbb-devel", "tcmlib", "umf")
"""What pip installs for Intel's OpenMP and TBB, on which nothing here computes."""

TEST = "bin/blas_test"


class Mkl(Block):
    """Intel oneAPI Math Kernel Library: BLAS, LAPACK, FFT.  Source: https://www.intel.com/content/www/us/en/developer/tools/oneapi/onemkl.html

    From the wheels ``mkl``, ``mkl-include`` and ``mkl-devel``, installed by a Python of the distribution that stays in
    the builder. Programs link ``libmkl_rt``, which chooses the kernels by the CPU at run time. It uses GNU's OpenMP, as
    programs compiled with GCC do: two OpenMP run times in one process compete for the cores. ScaLAPACK is included for
    Intel MPI and Open MPI.
    """

    name = "mkl"
    provides = ("blas",)
    needs = (need("gnu"),)

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Best on Intel's CPUs; of no use without x86-64."""
        if facts.architecture != "x86_64":
            return None
        return 0 if vendor(facts.partition.cpu.target) == "GenuineIntel" else 1

    def inputs(self, ctx: Context) -> list[Input]:
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """A Python to install wheels with."""
        return python_to_unpack()

    def environment(self, ctx: Context) -> Environment:
        """``BLAS_LIBS``, as every provider of blas has it; where it is, and GNU's OpenMP."""
        home = ctx.prefix
        return Environment(
            both={"MKLROOT": home, "MKL_THREADING_LAYER": "GNU"},
            build={"BLAS_LIBS": f"-L{home}/lib -lmkl_rt"},
            paths={"LD_LIBRARY_PATH": [f"{home}/lib"]},
            build_paths={"CPATH": [f"{home}/include"], "CMAKE_PREFIX_PATH": [home]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install the wheels, and make the link that linkers look for, which no wheel can hold."""
        home = ctx.prefix
        yield unpack_wheels(
            ctx,
            _wheels(ctx),
            "mkl",
            f"rm -rf {home}/lib/python3*",
            f"rm -f {home}/lib/libmkl_intel_thread.so.* {home}/lib/libmkl_tbb_thread.so.*",
            command("ln", "-s", str(ctx.release.values["library"]), f"{home}/lib/libmkl_rt.so"),
        )
        program = f"{SCRATCH}/blas_test.c"
        yield run(
            "matrix product",
            TextFile("files/tests/blas_test.c", program, ctx.text_file("blas_test.c")),
            command("mkdir", "-p", f"{home}/bin"),
            f'"$CC" -O2 -o {home}/{TEST} {program} $BLAS_LIBS -ldl',
            joins="next",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The libraries and the test; headers stay in the builder."""
        return Runtime(copies=(f"{ctx.prefix}/bin", f"{ctx.prefix}/lib"))

    def test(self, ctx: Context) -> list[Test]:
        """A product is right and is made by this MKL."""
        program = f"{ctx.prefix}/{TEST}"
        minor = ".".join(ctx.version.split(".")[:2])
        return [
            Test("matrix product", program, expect="0 of 490000 numbers wrong"),
            Test("by MKL", f"MKL_VERBOSE=1 {program}", expect="MKL_VERBOSE DGEMM(N,N,700,700,700"),
            Test("version", program, expect=f"Version {minor}"),
        ]

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts Intel's licence."""
        return [f"The build accepts the {INTEL_SIMPLIFIED.title} for MKL {ctx.version}."]

    def capabilities(self, ctx: Context) -> Capabilities:
        return Capabilities(licences=(INTEL_SIMPLIFIED,))


def _wheels(ctx: Context) -> Wheels:
    names = ("mkl", "mkl-devel", "mkl-include")
    return ctx.wheels(f"mkl-{ctx.version}", [f"{name}=={ctx.version}" for name in names]).without(*UNUSED)
