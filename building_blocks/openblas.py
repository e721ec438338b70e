"""OpenBLAS: BLAS and LAPACK, compiled for the partition's CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.backends.hardware.microarchitecture import nearest, vendor
from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, need
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH

TARGETS = {
    "sapphirerapids": "SAPPHIRERAPIDS",
    "skylake_avx512": "SKYLAKEX",
    "zen4": "SKYLAKEX",
    "x86_64_v4": "SKYLAKEX",
    "zen": "ZEN",
    "haswell": "HASWELL",
    "x86_64_v3": "HASWELL",
    "bulldozer": "BULLDOZER",
    "sandybridge": "SANDYBRIDGE",
    "nehalem": "NEHALEM",
    "neoverse_v2": "NEOVERSEV1",
    "neoverse_v1": "NEOVERSEV1",
    "neoverse_n2": "NEOVERSEN2",
    "neoverse_n1": "NEOVERSEN1",
    "a64fx": "A64FX",
    "thunderx2": "THUNDERX2T99",
    "power10le": "POWER10",
    "power9le": "POWER9",
    "power8le": "POWER8",
}
"""OpenBLAS' kernels for a CPU by archspec's name; a CPU that is not here has those of its nearest ancestor.

Source: TargetList.txt, README.md (SKYLAKEX for Zen 4) and driver/others/dynamic_arm64.c (Neoverse V2 as V1) of
github.com/OpenMathLib/OpenBLAS@72461f1c.
"""

TEST = "bin/blas_test"


class Openblas(Block):
    """OpenBLAS, a BLAS and LAPACK with kernels in assembly.  Source: https://github.com/OpenMathLib/OpenBLAS

    It uses OpenMP threads, so ``OMP_NUM_THREADS`` applies to it and to the program that calls it. From source it only
    has the kernels for the partition's CPU, or, if OpenBLAS has none for that CPU, those for all, chosen at run time.
    The project's wheels (scipy-openblas32 and 64) cannot be used here: their functions have other names.
    """

    name = "openblas"
    provides = ("blas",)
    needs = (need("gnu"),)

    class Options(BlockOptions, frozen=True):
        """``obtain``: compile the ``source``, or use the distribution's ``package``: older, for all CPUs, quick."""

        obtain: Literal["source", "package"] = "source"

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Works everywhere; on Intel's CPUs MKL comes first."""
        return 1 if vendor(facts.partition.cpu.target) == "GenuineIntel" else 0

    def inputs(self, ctx: Context) -> list[Input]:
        return [] if _by_package(ctx) else super().inputs(ctx)

    def packages(self, ctx: Context) -> Packages:
        """The library itself, or the Fortran compiler for its LAPACK."""
        if _by_package(ctx):
            return Packages(build={"apt": ["libopenblas-openmp-dev"]}, run={"apt": ["libopenblas0-openmp"]})
        gnu = ctx.use("gnu").release.values
        suffix, library = str(gnu["suffix"]), str(gnu.get("libgfortran", "libgfortran5"))
        fortran = f"gcc{suffix.removeprefix('-')}-fortran"
        return Packages(
            build={"apt": [f"gfortran{suffix}"], "dnf": ["gcc-gfortran"], "zypper": [fortran]},
            run={"apt": [library], "dnf": ["libgfortran"], "zypper": ["libgfortran5"]},
        )

    def environment(self, ctx: Context) -> Environment:
        """``BLAS_LIBS``, as every provider of blas has it; what the loader, CMake and the compiler look for."""
        if _by_package(ctx):
            return Environment(build={"BLAS_LIBS": "-lopenblas"})
        home = ctx.prefix
        return Environment(
            build={"BLAS_LIBS": f"-L{home}/lib -lopenblas"},
            paths={"LD_LIBRARY_PATH": [f"{home}/lib"]},
            build_paths={"CPATH": [f"{home}/include"], "CMAKE_PREFIX_PATH": [home]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile it, without its own tests, which would run on the building machine's CPU."""
        source, folder = f"{SCRATCH}/openblas", f"{ctx.prefix}/bin"
        if not _by_package(ctx):
            make = command("make", *_words(ctx))
            yield run("fetch", ctx.unpack(ctx.archive(), source))
            yield run("compile", command("cd", source), f'{make} -j "$(nproc)" libs netlib shared')
            yield run(
                "install",
                command("cd", source),
                f"{make} PREFIX={ctx.prefix} install",
                "cd /",
                command("rm", "-rf", source),
                joins="previous",
            )
        program = f"{SCRATCH}/blas_test.c"
        yield run(
            "matrix product",
            TextFile("files/tests/blas_test.c", program, ctx.text_file("blas_test.c")),
            command("mkdir", "-p", folder),
            f'"$CC" -O2 -o {ctx.prefix}/{TEST} {program} $BLAS_LIBS -ldl',
            joins="next",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return () if _by_package(ctx) else (ctx.prefix,)

    def test(self, ctx: Context) -> list[Test]:
        """A product is right and is made by this OpenBLAS."""
        program = f"{ctx.prefix}/{TEST}"
        tests = [
            Test("matrix product", program, expect="0 of 490000 numbers wrong"),
            Test("by OpenBLAS", program, expect=f"OpenBLAS {ctx.version}"),
        ]
        target = nearest(ctx.facts.partition.cpu.target, TARGETS)
        if target and not _by_package(ctx):
            tests.append(Test("kernels for the CPU", f"{program} | tr a-z A-Z", expect=f"KERNELS FOR {target}"))
        return tests

    def long_build(self, ctx: Context) -> str:
        if _by_package(ctx):
            return ""
        known = nearest(ctx.facts.partition.cpu.target, TARGETS)
        return "about 10 minutes on 2 CPUs" if known else "about an hour on 2 CPUs, because it is for all CPUs"


def _by_package(ctx: Context) -> bool:
    return bool(ctx.options.obtain == "package")


def _words(ctx: Context) -> list[str]:
    """Variables of make.

    NUM_THREADS is the most that it can ever use, by default as many as the building machine has.
    """
    cpu = ctx.facts.partition.cpu
    target = nearest(cpu.target, TARGETS)
    return [
        f"TARGET={target}" if target else "DYNAMIC_ARCH=1",
        "USE_OPENMP=1",
        f"NUM_THREADS={max(64, cpu.cores * cpu.threads_per_core)}",
        "NO_STATIC=1",
        f"FC=/usr/bin/gfortran{ctx.use('gnu').release.values['suffix']}",
    ]
