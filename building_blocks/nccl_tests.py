"""NVIDIA's NCCL benchmarks, for comparing networks between GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.gpu_collectives import gencode
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, complete_but_driver, run
from hpcgen.core.model.image_paths import SCRATCH

OWN_GPU = "case ${CUDA_VISIBLE_DEVICES:-all} in all | *,*) ;; *) export NCCL_TESTS_DEVICE=0 ;; esac"
"""The programs take the GPU with the number of the rank on its node, and a rank may see no other than its own."""


class NcclTests(Block):
    """nccl-tests: the bandwidth of NCCL's collectives.  Source: https://github.com/NVIDIA/nccl-tests

    Compiled with MPI, so that each rank of a job has a GPU; ``net-test nccl`` starts them. The last figure that they
    print, ``Avg bus bandwidth``, can be compared between numbers of GPUs.
    """

    name = "nccl_tests"
    gpu_vendor = "nvidia"
    needs = (need("gnu", build_only=True), need("cuda"), need("nccl"), need("mpi"))

    def packages(self, ctx: Context) -> Packages:
        return Packages(build={"apt": ["make"], "dnf": ["make"], "zypper": ["make"]})

    def environment(self, ctx: Context) -> Environment:
        """The programs are found by name."""
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """The MPI's compiler is the one below nvcc, so that it finds its own headers and libraries."""
        source = f"{SCRATCH}/nccl_tests"
        homes = [f"{name.upper()}_HOME={ctx.use(name).prefix}" for name in ("cuda", "nccl", "mpi")]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "compile",
            f'{command("make", "-C", source, "MPI=1", "CXX=mpicxx", *homes, *gencode(ctx))} -j "$(nproc)"',
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            f"cp {source}/build/*_perf {ctx.prefix}/bin/",
            command("rm", "-rf", source),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)

    def test(self, ctx: Context) -> list[Test]:
        """All libraries are found; on a node with a GPU, one rank sums up on it without a mistake."""
        program = f"{ctx.prefix}/bin/all_reduce_perf"
        # Open MPI 5 with CUDA links the driver's library, which is the host's.
        missing = complete_but_driver(program)
        sums = own_ranks(1, program, "-b", "8", "-e", "1M", "-f", "2", "-g", "1")
        return [
            Test("libraries", f"test -x {program} && {missing}"),
            Test("sums on a GPU", sums, device="gpu", expect="Out of bounds values : 0 OK"),
            Test(
                "all-reduce",
                f"{OWN_GPU}; {command(program, '-b', '8', '-e', '1G', '-f', '2', '-g', '1')}",
                device="gpu",
                expect="Out of bounds values : 0 OK",
                ranks="per_gpu",
                figures="nccl_tests",
                measure="nccl_bus_bandwidth",
            ),
        ]
