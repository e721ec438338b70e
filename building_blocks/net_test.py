"""One program in front of OSU's benchmarks and HPL, which are started in the same way for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.standard_mpi import linked
from hpcgen.blocks.steps import Environment, Input, Run, Runtime, Test, TextFile, command, run
from hpcgen.core.model.image_paths import SCRATCH


class NetTest(Block):
    """``net-test``: OSU's benchmarks, HPL and, if the image has it, nccl-tests, started alike.  Source: hpcgen

    Every rank starts it with the same arguments; it chooses OSU's program by the number of ranks and writes HPL's
    settings. It prints their output; ``hpcgen test --nodes`` compares the figures with the profile's.
    """

    name = "net_test"
    needs = (need("osu"), need("hpl"), need("mpi"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing from outside: the program is a file of the kit."""
        return []

    def environment(self, ctx: Context) -> Environment:
        """The program is found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        scratch, program = f"{SCRATCH}/net_test.sh", f"{ctx.prefix}/bin/net-test"
        yield run(
            "install",
            TextFile("files/tests/net_test.sh", scratch, ctx.text_file("net_test.sh")),
            command("install", "-D", "-m", "755", scratch, program),
            joins="next",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """Without a host's MPI, three ranks sum up and two solve a small system, whose residual HPL checks."""
        program = f"{ctx.prefix}/bin/net-test"
        solve = Test("HPL", command(program, "hpl"), expect="PASSED", ranks="all", figures="hpl")
        if ctx.facts.mpi is not None:
            return [Test("program", f"test -x {program}"), solve]
        allreduce = own_ranks(3, program, "allreduce", "-m", "4:1024", "-i", "10")
        return [
            Test("allreduce", allreduce, expect="OSU MPI Allreduce Latency Test"),
            Test("HPL", own_ranks(2, program, "hpl", "500", "64"), expect="PASSED"),
            solve,
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """It starts programs of ``osu`` and ``hpl``, and is linked with nothing itself."""
        return linked(ctx)
