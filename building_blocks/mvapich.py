"""MVAPICH, the MPI of Ohio State University, on request only."""

from __future__ import annotations

from hpcgen.blocks.base import Context, Situation, need
from hpcgen.blocks.mvapich import MvapichBlock
from hpcgen.blocks.steps import Packages


def _by_ucx(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "infiniband"


def _by_libfabric(situation: Situation) -> bool:
    return not _by_ucx(situation)


class Mvapich(MvapichBlock):
    """MVAPICH 4, from source.  Source: https://mvapich.cse.ohio-state.edu

    Over UCX on InfiniBand, over libfabric elsewhere. It is based on MPICH, so its library is ``libmpi.so.12`` too. It
    is never chosen by default; request it with ``--set mpi.provider=mvapich``.
    """

    name = "mvapich"
    needs = (need("gnu"), need("ucx", when=_by_ucx), need("libfabric", when=_by_libfabric))
    ranks_print = ("mpivars", "MPI Control Variables")

    def packages(self, ctx: Context) -> Packages:
        """What its ``configure`` asks for."""
        return Packages(build={name: ["bison", "flex"] for name in ("apt", "dnf", "zypper")})

    def below(self, ctx: Context) -> list[str]:
        """UCX or libfabric; the providers are theirs to say."""
        below = "ucx" if ctx.has("ucx") else "libfabric"
        return [
            f"--with-device=ch4:{'ucx' if below == 'ucx' else 'ofi'}",
            f"--with-{below}={ctx.use(below).prefix}",
            "--with-hwloc=embedded",
            "--disable-hip",
        ]
