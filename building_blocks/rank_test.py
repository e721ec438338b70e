"""The smallest MPI program that shows whether a job is one job, and with which libraries."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.standard_mpi import linked, linked_test, mpicc
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, command, complete_but_driver, run
from hpcgen.core.model.image_paths import SCRATCH


class RankTest(Block):
    """Prints the ranks of a job and the MPI and fabric libraries that were really loaded.  Source: hpcgen

    Exits with 3 if ``HPCGEN_RANKS`` is set and the job has another number of ranks, because some launchers silently
    start many jobs of one rank each.
    """

    name = "rank_test"
    needs = (need("gnu", build_only=True), need("mpi"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the program is a file of the kit."""
        return []

    def environment(self, ctx: Context) -> Environment:
        """The program is found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/rank_test.c"
        yield run(
            "compile",
            TextFile("files/tests/rank_test.c", source, ctx.text_file("rank_test.c")),
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            command(mpicc(ctx), "-O2", "-rdynamic", "-o", f"{ctx.prefix}/bin/rank_test", source),
            joins="next",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It is there, and every library that it was linked with is found; the GPU driver's is the host's."""
        program = f"{ctx.prefix}/bin/rank_test"
        # ldd of a file that is missing prints nothing to grep for. Open MPI 5 with CUDA links the driver's library.
        missing = complete_but_driver(program)
        return [Test("libraries", f"test -x {program} && {missing}"), *linked_test(ctx, program)]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx)
