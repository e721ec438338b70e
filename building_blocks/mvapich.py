"""MVAPICH, the MPI of Ohio State University, for those who ask for it."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.own_ranks import own_ranks
from hpcgen.blocks.steps import Environment, Packages, Test


def _by_ucx(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "infiniband"


def _by_libfabric(situation: Situation) -> bool:
    return not _by_ucx(situation)


class Mvapich(AutotoolsBlock):
    """MVAPICH 4, from source.  Source: https://mvapich.cse.ohio-state.edu

    Over UCX on InfiniBand, over libfabric elsewhere. It is made from MPICH: its library is ``libmpi.so.12``, too. It
    comes after all other MPIs, so it has to be asked for (``--set mpi.provider=mvapich``).
    """

    name = "mvapich"
    provides = ("mpi",)
    needs = (need("gnu"), need("ucx", when=_by_ucx), need("libfabric", when=_by_libfabric))

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran bindings, for which the compilers need Fortran too."""

        fortran: bool = False

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """After all others; of no use beside a host's Open MPI."""
        return None if facts.mpi is not None and facts.mpi.abi != "mpich" else 9

    def packages(self, ctx: Context) -> Packages:
        """What its ``configure`` asks for."""
        return Packages(build={name: ["bison", "flex"] for name in ("apt", "dnf", "zypper")})

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries, and its place for build scripts."""
        return Environment(
            both={"MPI_HOME": ctx.prefix},
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def settings(self, ctx: Context) -> list[str]:
        below = "ucx" if ctx.has("ucx") else "libfabric"
        return [
            f"--with-device=ch4:{'ucx' if below == 'ucx' else 'ofi'}",
            f"--with-{below}={ctx.use(below).prefix}",
            "--with-pm=hydra",
            "--enable-fortran" if ctx.options.fortran else "--disable-fortran",
            "--with-hwloc=embedded",
            "--disable-cuda",
            "--disable-hip",
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
            tests.append(Test("two ranks", own_ranks(2, "mpivars"), expect="MPI Control Variables"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """MPICH's ABI and PMI; the providers are UCX's and libfabric's to say."""
        return Capabilities(
            mpi_abi="mpich", mpi_flavour="mvapich2", mpi_library="libmpi.so.12", pmi=("hydra", "pmi", "pmi2")
        )
