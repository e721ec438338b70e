"""oneCCL, Intel's collectives for deep learning."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import INTEL_SIMPLIFIED, Capabilities
from hpcgen.blocks.prefix_wheels import python_to_unpack, unpack_wheels
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH

COPIES = {"libccl.so.1": "libccl.so.1.0", "libccl.so": "libccl.so.1", "libccl.so.2": "libccl.so.2.0"}
"""Names that are links in Intel's own packages, and copies of 330 MB each in a wheel, which can hold no links."""


class Oneccl(Block):
    """Intel oneAPI Collective Communications Library.  Source: https://github.com/uxlfoundation/oneCCL

    From the wheels ``oneccl`` and ``oneccl-devel`` with the run time of Intel's compiler, installed by a Python of the
    distribution that stays in the builder. Ranks communicate through the image's MPI, which must have MPICH's binary
    interface, or through its libfabric; Intel's own MPI, on which the wheel depends, is left out.
    """

    name = "oneccl"
    needs = (need("gnu"), need("mpi"))

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels.

        Raises
        ------
        ConflictError: there are none for the architecture, or they do not work with the chosen MPI.
        """
        if ctx.facts.architecture != "x86_64":
            raise ConflictError(f"oneccl {ctx.version} is for x86_64, not for {ctx.facts.architecture}")
        if ctx.use("mpi").name == "openmpi":
            message = f"oneccl {ctx.version} is linked with MPICH's libmpi.so.12, which Open MPI is not"
            raise ConflictError(message, remedy="--set mpi.provider=mpich or intel_mpi")
        return [_wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """A Python to install wheels with."""
        return python_to_unpack()

    def environment(self, ctx: Context) -> Environment:
        home = ctx.prefix
        return Environment(
            both={"CCL_ROOT": home},
            paths={"LD_LIBRARY_PATH": [f"{home}/lib"]},
            build_paths={"CPATH": [f"{home}/include"], "CMAKE_PREFIX_PATH": [home]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install the wheels, and compile the collective that tests it."""
        home = ctx.prefix
        yield unpack_wheels(
            ctx,
            _wheels(ctx),
            "oneccl",
            f"rm -rf {home}/lib/python3* {home}/lib/clang {home}/lib/*.a {home}/lib/ccl/cpu",
            command("cd", f"{home}/lib"),
            [command("ln", "-sf", file, name) for name, file in COPIES.items()],
            "cd /",
        )
        program = f"{SCRATCH}/ccl_test.cpp"
        yield run(
            "allreduce",
            TextFile("files/tests/ccl_test.cpp", program, ctx.text_file("ccl_test.cpp")),
            command("mkdir", "-p", f"{home}/bin"),
            f"mpicxx -std=c++17 -O1 -o {home}/bin/ccl_test {program} -L{home}/lib -Wl,-rpath-link,{home}/lib -lccl",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The libraries and the test; headers stay in the builder."""
        return Runtime(copies=(f"{ctx.prefix}/bin", f"{ctx.prefix}/lib"))

    def test(self, ctx: Context) -> list[Test]:
        """An allreduce of one rank is right and is made by this oneCCL; start ccl_test with more by the launcher."""
        return [Test("allreduce", f"{ctx.prefix}/bin/ccl_test", expect=f"oneCCL {ctx.version}, rank 0 of 1: 0 of")]

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts Intel's licence."""
        return [f"The build accepts the {INTEL_SIMPLIFIED.title} for oneCCL {ctx.version}."]

    def capabilities(self, ctx: Context) -> Capabilities:
        return Capabilities(licences=(INTEL_SIMPLIFIED,))


def _wheels(ctx: Context) -> Wheels:
    names = [f"oneccl=={ctx.version}", f"oneccl-devel=={ctx.version}", *ctx.release.values["pins"]]
    return ctx.wheels(f"oneccl-{ctx.version}", names).without("impi-rt")
