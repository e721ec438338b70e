"""What MVAPICH2 and its successor MVAPICH have in common: both are made from MPICH and are built as it is."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.backends.hardware.mpi_abi import HOST_SETTINGS, wanted_abi
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.steps import Environment, Test


class MvapichBlock(AutotoolsBlock):
    """Base of both. A subclass says what is below it: its needs, packages and :meth:`below`."""

    provides = ("mpi",)
    passes_on = {"fortran": ("gnu",)}
    ranks_print: tuple[str, str]
    """A program of the release that tells of itself, and what each rank of it prints."""

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran bindings, which need a Fortran compiler."""

        fortran: bool = False

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """After all others; of no use beside a host's Open MPI."""
        return None if facts.mpi is not None and wanted_abi(facts.mpi) != "mpich" else 9

    def below(self, ctx: Context) -> Sequence[str]:
        """Words of ``configure`` for what drives the network."""
        raise NotImplementedError

    def providers(self, ctx: Context) -> tuple[str, ...]:
        """Fabric providers that it drives by itself."""
        return ()

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries, and its place for build scripts."""
        return Environment(
            both={"MPI_HOME": ctx.prefix},
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def settings(self, ctx: Context) -> list[str]:
        return [
            *self.below(ctx),
            "--with-pm=hydra",
            "--enable-fortran" if ctx.options.fortran else "--disable-fortran",
            "--disable-cuda",
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def configure(self, ctx: Context) -> str:
        """GCC 10 and later take mismatched arguments of old Fortran for errors."""
        fortran = "FFLAGS=-fallow-argument-mismatch FCFLAGS=-fallow-argument-mismatch "
        before = fortran if ctx.options.fortran and ctx.use("gnu").at_least("10") else ""
        return before + super().configure(ctx)

    def test(self, ctx: Context) -> list[Test]:
        """The library has the shared name; the release is this one; two processes start where no host's MPI is used."""
        tests = [
            Test("library", f"ls {ctx.prefix}/lib", expect="libmpi.so.12"),
            Test("release", "mpichversion", expect=ctx.version),
        ]
        if ctx.facts.mpi is None:
            program, printed = self.ranks_print
            tests.append(Test("two ranks", own_ranks(2, program), expect=printed))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """MPICH's ABI and PMI."""
        return Capabilities(
            mpi_abi="mpich",
            mpi_flavour="mvapich2",
            mpi_library="libmpi.so.12",
            pmi=("hydra", "pmi", "pmi2"),
            providers=self.providers(ctx),
            host_settings=HOST_SETTINGS["mpich"],
        )
