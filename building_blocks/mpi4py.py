"""MPI for Python programs, over the image's MPI or the host's in its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES
from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.standard_mpi import by_standard, linked, mpicc
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH

BUILD_TOOLS, SOURCE = f"{SCRATCH}/mpi4py-build", f"{SCRATCH}/mpi4py"


def _compiled(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


class Mpi4py(Block):
    """mpi4py, MPI for Python programs.  Source: https://github.com/mpi4py/mpi4py

    The wheel has one module for the binary interface of MPICH and one for that of Open MPI, and loads the MPI that it
    finds at run time; ``MPI4PY_LIBMPI`` sets the name to look for, so that a host library that comes first is found.
    Wheels up to 4.1.2 have no module for the standard's interface (CHANGES.rst of mpi4py announces it for 4.2). When
    compiled, it is linked with the image's MPI like any program, since 4.1 also through the standard's interface.
    """

    name = "mpi4py"
    distributions = ("mpi4py",)
    needs = (need("python"), need("mpi"), need("gnu", build_only=True, when=_compiled))

    class Options(BlockOptions, frozen=True):
        """``install``: the project's ``wheel``, or compiled from ``source``: the default beside a bound host MPI."""

        install: Literal["wheel", "source"] = "wheel"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """What is linked with the image's MPI is what sites have tried with theirs in its place."""
        return {"install": "source" if facts.mpi is not None and facts.mpi.shown_inside else "wheel"}

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """Compiled, for releases without wheels."""
        return {"install": ("source",)}

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Those that know the MPI 5 standard, where programs are linked with its interface."""
        if not by_standard(facts):
            return []
        reason = "it is linked through the MPI 5 standard's interface, new in 4.1"
        return [SiteRange(">=4.1", "mpi.abi", reason)]

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel, or the source package and what it is built with.

        Raises
        ------
        ConflictError: the wheel has no module for the interface that programs are linked with.
        """
        if ctx.options.install == "wheel" and by_standard(ctx.facts):
            message = f"the wheel of mpi4py {ctx.version} has no module for the MPI 5 standard's interface"
            raise ConflictError(message, remedy="--set mpi4py.install=source")
        return [_wheel(ctx)] if ctx.options.install == "wheel" else [*_build_tools(ctx), _source(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """The name of the library that the wheel is to load."""
        if ctx.options.install == "source":
            return Environment()
        abi = "openmpi" if ctx.use("mpi").name == "openmpi" else "mpich"
        return Environment(both={"MPI4PY_LIBMPI": MPI_LIBRARIES[abi]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it into the image's Python environment, and the program that stacks run as a test."""
        if ctx.options.install == "wheel":
            yield run("mpi4py", ctx.pip(_wheel(ctx)), caches=("pip",))
        else:
            for tools in _build_tools(ctx):
                yield run("what it is built with", ctx.pip(tools, target=BUILD_TOOLS), caches=("pip",))
            variables = {"MPICC": mpicc(ctx), "PYTHONPATH": BUILD_TOOLS}
            yield run("source", ctx.pip_unpack(_source(ctx), SOURCE), caches=("pip",))
            yield run("compile", ctx.compile_wheel(SOURCE, variables), command("rm", "-rf", BUILD_TOOLS))
            yield run("install", ctx.install_wheel("mpi4py", _source(ctx)), joins="previous")
        program = ctx.text_file("mpi4py_ranks.py")
        yield run("test program", TextFile("files/tests/mpi4py_ranks.py", f"{ctx.prefix}/share/ranks.py", program))

    def runtime(self, ctx: Context) -> Runtime:
        """The test program; mpi4py itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The wheel that is linked with the image's MPI."""
        return (ctx.wheel_folder, ctx.prefix) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It is this version; without a host's MPI, two ranks add up their numbers."""
        python = f"{ctx.use('python').prefix}/bin/python"
        version = command(python, "-c", "import mpi4py; print(mpi4py.__version__)")
        tests = [Test("version", version, expect=ctx.version)]
        if ctx.facts.mpi is None:
            ranks = own_ranks(2, python, f"{ctx.prefix}/share/ranks.py")
            tests.append(Test("two ranks", ranks, expect="rank 1 of 2"))
        everywhere = command(python, f"{ctx.prefix}/share/ranks.py")
        return [*tests, Test("all ranks", everywhere, expect="the ranks add up to", ranks="all")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)


def _wheel(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"mpi4py-{ctx.version}"), [f"mpi4py=={ctx.version}"])


def _build_tools(ctx: Context) -> list[Wheels]:
    """Cython, which 4.0 and later are translated by; 3.1.6 comes translated."""
    cython = ctx.release.values.get("cython")
    return [] if cython is None else [ctx.wheels(ctx.facts.listed("mpi4py-build"), [f"cython=={cython}"])]


def _source(ctx: Context) -> Wheels:
    line = f"mpi4py=={ctx.version} --hash=sha256:{ctx.release.values['sdist']}"
    return Wheels(f"mpi4py-{ctx.version}-source", (line,), hashed=True)
