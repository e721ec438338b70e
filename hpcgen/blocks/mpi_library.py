"""Libraries that are compiled over the image's MPI, with a program of several ranks that proves each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.standard_mpi import linked, linked_test, mpicc, mpicxx
from hpcgen.blocks.steps import Environment, Run, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH

_SHARED = "mpi_ranks"
"""What the programs share: a header of C, and a module of Fortran."""


class MpiLibraryBlock(Block):
    """What such libraries share, whatever compiles them: named before that class among the bases of a block.

    ``library``: its file in ``lib``. ``program``: of building_blocks/files, which calls it on all ranks and fails where
    a result is wrong, or where a second MPI is loaded; it takes the folder that it may write into. ``linked_with``:
    words of the linker for it. ``fortran_program``, ``fortran_linked_with``: the same of its Fortran interface, which
    ``fortran`` of its options asks for; its modules are among the headers. ``known_by``: variables by which public
    makefiles look for its folder.
    """

    library: ClassVar[str]
    program: ClassVar[str]
    linked_with: ClassVar[tuple[str, ...]]
    fortran_program: ClassVar[str] = ""
    fortran_linked_with: ClassVar[tuple[str, ...]] = ()
    known_by: ClassVar[tuple[str, ...]] = ()
    passes_on = {"fortran": ("gnu", "mpi")}

    def fortran_library(self, ctx: Context) -> Iterable[Run]:
        """Further steps of the Fortran interface, where the library's own are not all."""
        return ()

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries; while building, compilers, CMake and pkg-config find it."""
        home = ctx.prefix
        return Environment(
            build=dict.fromkeys(self.known_by, home),
            paths={"PATH": [f"{home}/bin"], "LD_LIBRARY_PATH": [f"{home}/lib"]},
            build_paths={
                "CMAKE_PREFIX_PATH": [home],
                "CPATH": [f"{home}/include"],
                "LIBRARY_PATH": [f"{home}/lib"],
                "PKG_CONFIG_PATH": [f"{home}/lib/pkgconfig"],
            },
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        yield from super().build(ctx)
        source = f"{SCRATCH}/{self.program}"
        compiler = mpicxx(ctx) if self.program.endswith(".cpp") else mpicc(ctx)
        yield run(
            "program of the self-test",
            _files(ctx, self.program, f"{_SHARED}.h"),
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            command(compiler, "-O2", "-o", _program(ctx, self.program), source, *self.linked_with),
            joins="previous",
        )
        if _has_fortran(ctx):
            yield from self.fortran_library(ctx)
            yield self._fortran_program(ctx)

    def _fortran_program(self, ctx: Context) -> Run:
        # Neither the environment nor the wrapper leads Fortran to the modules of a library.
        modules, sources = f"-I{ctx.prefix}/include", (f"{_SHARED}.f90", self.fortran_program)
        words = ["-O2", modules, "-o", _program(ctx, self.fortran_program), *sources, *self.fortran_linked_with]
        return run(
            "program of the self-test in Fortran",
            _files(ctx, *sources),
            # Where the shared module is written to.
            command("cd", SCRATCH),
            command("mpifort", *words),
            joins="previous",
        )

    def test(self, ctx: Context) -> list[Test]:
        """The program finds it; two ranks use it with right results, on one node and between two."""
        # FFTW's library over MPI leaves it to the program to be linked with MPI.
        library, program = f"{ctx.prefix}/lib/{self.library}", _program(ctx, self.program)
        tests = [Test("library", command("ldd", program), expect=library), *linked_test(ctx, program)]
        programs = {"two ranks": program}
        if _has_fortran(ctx):
            programs["two ranks in Fortran"] = _program(ctx, self.fortran_program)
        if ctx.facts.mpi is None:
            # An MPI with CUDA may be linked with the driver's library.
            device = "gpu" if getattr(ctx.use("mpi").options, "cuda", False) else ""
            tests += [Test(name, own_ranks(2, each, "/tmp"), device, "2 ranks") for name, each in programs.items()]
        # Of a job over several nodes the present folder is one that they share.
        return [*tests, Test("between nodes", command(program, "."), expect="2 ranks", ranks="two")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)


def _has_fortran(ctx: Context) -> bool:
    return bool(getattr(ctx.options, "fortran", False))


def _program(ctx: Context, source: str) -> str:
    return f"{ctx.prefix}/bin/{source.partition('.')[0]}"


def _files(ctx: Context, *names: str) -> list[TextFile]:
    return [TextFile(f"files/tests/{name}", f"{SCRATCH}/{name}", ctx.text_file(name)) for name in names]
