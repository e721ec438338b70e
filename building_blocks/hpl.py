"""High-Performance Linpack."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.standard_mpi import linked, linked_test, mpicc
from hpcgen.blocks.steps import Environment, Run, Runtime, Test, command, complete_but_driver, run
from hpcgen.core.model.image_paths import SCRATCH


class Hpl(Block):
    """HPL, which solves a dense system of equations on all ranks.  Source: https://www.netlib.org/benchmark/hpl/

    Over the image's BLAS, which takes the threads of each rank from ``OMP_NUM_THREADS``. ``xhpl`` reads ``HPL.dat``
    from the folder that it is started in; the program of ``net_test`` writes one.
    """

    name = "hpl"
    needs = (need("gnu"), need("mpi"), need("blas"))

    def environment(self, ctx: Context) -> Environment:
        """The program is found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile with its own make, whose dependencies are not fit for several jobs at once."""
        source = f"{SCRATCH}/hpl"
        flags = " ".join(["$(HPL_DEFS)", "-O3", *ctx.flags])
        words = [f"TOPdir={source}", f"CC={mpicc(ctx)}", f"CCFLAGS={flags}", f"LINKER={mpicc(ctx)}", "LINKFLAGS="]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "compile",
            command("cd", f"{source}/setup"),
            "sh make_generic",
            command("cp", "Make.UNKNOWN", source),
            command("cd", source),
            f'{command("make", "arch=UNKNOWN", *words)} LAlib="$BLAS_LIBS"',
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            command("cp", f"{source}/bin/UNKNOWN/xhpl", f"{ctx.prefix}/bin/xhpl"),
            "cd /",
            command("rm", "-rf", source),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)

    def test(self, ctx: Context) -> list[Test]:
        """Its libraries are found. That it solves a system is tested by ``net_test``, which has the settings."""
        program = f"{ctx.prefix}/bin/xhpl"
        missing = complete_but_driver(program)
        return [Test("libraries", f"test -x {program} && {missing}"), *linked_test(ctx, program)]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)
