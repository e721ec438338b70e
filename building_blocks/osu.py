"""MPI benchmarks for comparing networks."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.standard_mpi import linked, linked_test, mpicc, mpicxx
from hpcgen.blocks.steps import Environment, Measure, Part, RankLayout, Test, command, complete_but_driver

RANKS: tuple[tuple[str, str, str, RankLayout, Measure | None], ...] = (
    ("latency within a node", "latency", "Latency", "pair", "latency_within_node"),
    ("bandwidth within a node", "bw", "Bandwidth", "pair", "bandwidth_within_node"),
    ("latency", "latency", "Latency", "two", "latency"),
    ("bandwidth", "bw", "Bandwidth", "two", "bandwidth"),
    ("allreduce", "allreduce", "Allreduce Latency", "all", None),
)
"""Test, program, what the program calls itself, the ranks that it is started on, what it measures."""

ON_GPUS: tuple[tuple[str, str, str, RankLayout], ...] = (
    ("latency between GPUs of a node", "latency", "Latency", "pair"),
    ("bandwidth between GPUs of a node", "bw", "Bandwidth", "pair"),
    ("latency between GPUs", "latency", "Latency", "two"),
    ("bandwidth between GPUs", "bw", "Bandwidth", "two"),
)
"""The same from and to the memory of GPUs; no figure of a profile is held against them yet."""


def _with_cuda(situation: Situation) -> bool:
    return bool(situation.options.cuda)


class Osu(AutotoolsBlock):
    """OSU Micro-Benchmarks for MPI in C.  Source: https://mvapich.cse.ohio-state.edu/benchmarks/

    All programs are in one folder.
    """

    name = "osu"
    needs = (need("gnu", build_only=True), need("mpi"), need("cuda", when=_with_cuda))
    gpu_memory = {"cuda": ("cuda", "0")}

    class Options(BlockOptions, frozen=True):
        """``cuda``: its programs can also use the memory of NVIDIA's GPUs; the default if the image has CUDA."""

        cuda: bool = False

    def settings(self, ctx: Context) -> list[str]:
        """Of CUDA without kernels of its own, which only benchmarks of managed memory have."""
        # Older C libraries have clock_gettime in librt. The driver's library is the host's: here is a stand-in for it.
        home = ctx.use("cuda").prefix if ctx.options.cuda else ""
        libraries = f"LDFLAGS=-lrt -L{home}/lib64/stubs" if home else "LDFLAGS=-lrt"
        cuda = ["--enable-cuda=basic", f"--with-cuda={home}"] if home else []
        return [f"CC={mpicc(ctx)}", f"CXX={mpicxx(ctx)}", libraries, *cuda, "--disable-dependency-tracking"]

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
        # With CUDA it is linked with the driver's library, and Open MPI 5 is too: it starts where the driver is.
        missing = complete_but_driver(program)
        tests = [Test("libraries", f"test -x {program} && {missing}"), *linked_test(ctx, program)]
        if ctx.facts.mpi is None:
            ranks = own_ranks(2, program, "-m", "1:1024", "-i", "10")
            device = "gpu" if ctx.options.cuda else ""
            tests.append(Test("two ranks", ranks, device=device, expect="OSU MPI Latency Test"))
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
        ] + self._between_gpus(ctx)

    def _between_gpus(self, ctx: Context) -> list[Test]:
        """From the memory of one GPU to that of another, where the MPI takes their addresses."""
        if not ctx.options.cuda or not getattr(ctx.use("mpi").options, "cuda", False):
            return []
        return [
            Test(
                name,
                command(f"{ctx.prefix}/bin/osu_{program}", "-d", "cuda", "D", "D"),
                device="gpu",
                expect=f"OSU MPI-CUDA {title} Test",
                ranks=ranks,
                figures="osu",
            )
            for name, program, title, ranks in ON_GPUS
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface its programs are linked."""
        return linked(ctx)
