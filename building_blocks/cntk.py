"""Microsoft Cognitive Toolkit, by its wheel, with the Open MPI that it is linked with."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, Facts, SiteRange, need
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.steps import Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.model.image_paths import SCRATCH

SOURCE = f"{SCRATCH}/cntk-openmpi"
LIBRARIES = ("libmpi.so.12", "libmpi_cxx.so.1")


class Cntk(Block):
    """Microsoft Cognitive Toolkit (CNTK), on CPUs of one node.  Source: https://github.com/microsoft/CNTK

    Its wheel loads ``libmpi.so.12`` and ``libmpi_cxx.so.1`` of Open MPI 1.10, which no distribution here has, so it is
    compiled for CNTK only and linked next to its libraries, where their loader looks first. MPICH's and Intel's
    libraries have the same name but a different binary interface, so a host MPI must not be bound into the image.
    """

    name = "cntk"
    needs = (need("python"), need("gnu", build_only=True))

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """There is one wheel, for x86_64."""
        if facts.architecture == "x86_64":
            return []
        words = f"the architecture {facts.architecture}, for which there is no package"
        return [SiteRange("<1", "system.architecture", words)]

    def inputs(self, ctx: Context) -> list[Input]:
        """Open MPI's source, the wheel and what it needs."""
        return [ctx.archive("openmpi"), _wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library, which CNTK and Open MPI are linked with."""
        return Packages(build={"apt": ["bzip2"]}, run={"apt": ["libstdc++6", "libgomp1"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Open MPI, the wheel, links between them, and the program that stacks run as a test."""
        prefix = f"{ctx.prefix}/openmpi"
        words = ("--enable-mpi-cxx", "--enable-mpi-fortran=no", "--enable-contrib-no-build=vt", "--without-verbs")
        flags = f"LDFLAGS=-Wl,-rpath,{prefix}/lib"
        yield run("Open MPI's source", ctx.unpack(ctx.archive("openmpi"), SOURCE))
        yield run(
            "compile Open MPI",
            command("cd", SOURCE),
            command("./configure", f"--prefix={prefix}", *words, flags),
            'make -j "$(nproc)"',
            "make install",
            "cd /",
            command("rm", "-rf", SOURCE),
        )
        yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run(
            "its MPI and the training step",
            TextFile("files/tests/cntk_step.py", f"{ctx.prefix}/share/cntk_step.py", ctx.text_file("cntk_step.py")),
            *[command("ln", "-s", f"{prefix}/lib/{name}", _beside(name)) for name in LIBRARIES],
        )

    def runtime(self, ctx: Context) -> Runtime:
        """Open MPI and the program; CNTK itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """Its own MPI is the one that is found, it loads, and a small network learns."""
        python = f"{ctx.use('python').prefix}/bin/python"
        found = f"ldd {_beside('libCntk.Core-2.7.so')} | grep -o 'libmpi.so.12 => .*/cntk/libs/libmpi.so.12'"
        version = "import cntk; print(cntk.__version__)"
        return [
            Test("its own MPI", found, expect="libmpi.so.12"),
            Test("version", command(python, "-c", version), expect=ctx.version),
            Test("training", command(python, f"{ctx.prefix}/share/cntk_step.py"), expect="images per second"),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """An MPI of its own, under a name that others have too, and Intel's OpenMP (``cntk/libs`` of its wheel)."""
        unused = None if ctx.facts.partition.gpu is None else GpuUnused("no CUDA package of it is listed here")
        return Capabilities(private_mpi=LIBRARIES[0], kmp=True, gpu_unused=unused)

    def details(self, ctx: Context) -> list[str]:
        """What it says that is harmless."""
        return [f"cntk {ctx.version} says that the distribution is not supported; it computes all the same"]


def _beside(name: str) -> str:
    """A file among CNTK's own libraries, where their RUNPATH begins."""
    return f"/opt/python/lib/python3.6/site-packages/cntk/libs/{name}"


def _wheels(ctx: Context) -> Wheels:
    return ctx.wheels(f"cntk-{ctx.version}", [f"cntk=={ctx.release.values['package']}", "numpy<1.20", "scipy<1.6"])
