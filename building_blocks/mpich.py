"""MPICH from source, with the library name that Intel's and Cray's MPI share."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, SiteRange, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Environment, Test
from hpcgen.platform.mpi_abi import mpich_of


class Mpich(AutotoolsBlock):
    """MPICH over libfabric, from source.  Source: https://www.mpich.org

    From source because the library must be called ``libmpi.so.12``, which a host's Intel MPI, MPICH,
    MVAPICH2 or Cray MPICH can take the place of; the distributions' own is ``libmpich.so.12``, which nothing
    replaces.

    Processes are started by Hydra in the image or by the host's launcher. MPICH speaks PMI-1 by itself, which
    Hydra and Slurm's ``pmi2`` both serve; PMIx it has not.
    """

    name = "mpich"
    provides = ("mpi",)
    needs = (need("gnu"), need("libfabric"))

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran bindings, for which the compilers need Fortran too."""

        fortran: bool = False

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Where the host's MPI, if there is one, has MPICH's ABI; Intel's own is better beside Intel's."""
        if facts.mpi is None:
            return 0
        if facts.mpi.abi != "mpich":
            return None
        return 1 if facts.mpi.flavour == "intel" else 0

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Not newer than the host's MPICH, of the generation of the host's Cray MPICH."""
        host = facts.mpi
        if host is None or not host.shown_inside:
            return []
        if host.flavour == "mpich":
            return [SiteRange(f"<={host.version}", "mpi.version", f"the host's MPICH {host.version} takes its place")]
        base = mpich_of(host.version) if host.flavour == "cray-mpich" else ""
        if not base:
            return []
        reason = f"the host's Cray MPICH {host.version}, which takes its place, is made from MPICH {base}"
        return [SiteRange(f"<{int(base.split('.')[0]) + 1}", "mpi.version", reason)]

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries, and its place for build scripts."""
        return Environment(
            both={"MPI_HOME": ctx.prefix},
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def settings(self, ctx: Context) -> list[str]:
        return [
            "--with-device=ch4:ofi",
            f"--with-libfabric={ctx.use('libfabric').prefix}",
            "--with-pm=hydra",
            "--enable-fortran" if ctx.options.fortran else "--disable-fortran",
            # Its own copy, whatever the builder has: the final stage may not have it.
            f"--with-hwloc{'' if ctx.me.at_least('4.0') else '-prefix'}=embedded",
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def configure(self, ctx: Context) -> str:
        """GCC 10 and later take mismatched arguments of old Fortran for errors."""
        fortran = "FFLAGS=-fallow-argument-mismatch FCFLAGS=-fallow-argument-mismatch "
        before = fortran if ctx.options.fortran and ctx.use("gnu").at_least("10") else ""
        return before + super().configure(ctx)

    def test(self, ctx: Context) -> list[Test]:
        """The library has the shared name; the launcher says its version; two processes start."""
        return [
            Test("library", f"ls {ctx.prefix}/lib", expect="libmpi.so.12"),
            Test("launcher", "mpiexec --version", expect=ctx.version),
            Test("provider", "mpichversion", expect="ch4:ofi"),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """MPICH's ABI; PMI-1 alone, which Hydra and Slurm's pmi2 serve. The providers are libfabric's to say."""
        return Capabilities(
            mpi_abi="mpich", mpi_flavour="mpich", mpi_library="libmpi.so.12", pmi=("hydra", "pmi", "pmi2")
        )
