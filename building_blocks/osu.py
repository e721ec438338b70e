"""The benchmarks of MPI that networks are compared by."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.standard_mpi import linked, linked_test, mpicc, mpicxx
from hpcgen.blocks.steps import Environment, Measure, Part, RankLayout, Test, command

RANKS: tuple[tuple[str, str, str, RankLayout, Measure | None], ...] = (
    ("latency within a node", "latency", "Latency", "pair", "latency_within_node"),
    ("bandwidth within a node", "bw", "Bandwidth", "pair", "bandwidth_within_node"),
    ("latency", "latency", "Latency", "two", "latency"),
    ("bandwidth", "bw", "Bandwidth", "two", "bandwidth"),
    ("allreduce", "allreduce", "Allreduce Latency", "all", None),
)
"""Test, program, what the program calls itself, the ranks that it is started on, what it measures."""


class Osu(AutotoolsBlock):
    """OSU Micro-Benchmarks, of MPI in C.  Source: https://mvapich.cse.ohio-state.edu/benchmarks/

    All programs are in one folder, whichever kind they are of.
    """

    name = "osu"
    needs = (need("gnu", build_only=True), need("mpi"))

    def settings(self, ctx: Context) -> list[str]:
        # Older C libraries have clock_gettime in librt.
        return [f"CC={mpicc(ctx)}", f"CXX={mpicxx(ctx)}", "LDFLAGS=-lrt", "--disable-dependency-tracking"]

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Install, and put links to all programs into one folder."""
        links = command("find", f"{ctx.prefix}/libexec", "-type", "f", "-name", "osu_*", "-exec", "ln", "-s")
        return [
            command("make", "-C", source, "install"),
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            f"{links} -t {ctx.prefix}/bin {{}} +",
            command("rm", "-rf", source),
        ]

    def environment(self, ctx: Context) -> Environment:
        """The programs are found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def test(self, ctx: Context) -> list[Test]:
        """The libraries of a program are found; without a host's MPI, two ranks measure."""
        program = f"{ctx.prefix}/bin/osu_latency"
        # Open MPI 5 with CUDA links the driver's library, which is the host's.
        missing = f"ldd {program} | grep 'not found' | grep -vc 'libcuda.so.1 ' | grep -qx 0"
        tests = [Test("libraries", f"test -x {program} && {missing}"), *linked_test(ctx, program)]
        if ctx.facts.mpi is None:
            ranks = own_ranks(2, program, "-m", "1:1024", "-i", "10")
            tests.append(Test("two ranks", ranks, expect="OSU MPI Latency Test"))
        return [*tests, *self._of_ranks(ctx)]

    def _of_ranks(self, ctx: Context) -> list[Test]:
        """Latency and bandwidth within a node and between two, and how long all ranks take for a sum."""
        return [
            Test(
                name,
                command(f"{ctx.prefix}/bin/osu_{program}"),
                expect=f"OSU MPI {title} Test",
                ranks=ranks,
                figures="osu",
                measure=measure,
            )
            for name, program, title, ranks, measure in RANKS
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface its programs are linked."""
        return linked(ctx)
