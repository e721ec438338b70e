"""MVAPICH2, the older MPI of Ohio State University, for programs and sites that still have it."""

from __future__ import annotations

from hpcgen.blocks.base import Context, Facts, Situation, need
from hpcgen.blocks.mvapich import MvapichBlock
from hpcgen.blocks.steps import Packages

VERBS = {
    "apt": (
        ["libibmad-dev", "libibumad-dev", "libibverbs-dev", "librdmacm-dev"],
        ["ibverbs-providers", "libibmad5", "libibumad3", "libibverbs1", "librdmacm1"],
    ),
    "dnf": (
        ["infiniband-diags-devel", "rdma-core-devel"],
        ["infiniband-diags", "libibumad", "libibverbs", "librdmacm"],
    ),
    "zypper": (["infiniband-diags-devel", "rdma-core-devel"], ["libibmad5", "libibumad3", "libibverbs1", "librdmacm1"]),
}
"""Packages for building and for running. It opens libibverbs, libibumad and libibmad as it starts, by their names."""

TOOLS = {"apt": ["bison", "flex", "zlib1g-dev"], "dnf": ["bison", "flex", "zlib-devel"]}
TOOLS["zypper"] = TOOLS["dnf"]
ZLIB = {"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]}


def _by_psm2(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "omni-path"


class Mvapich2(MvapichBlock):
    """MVAPICH2, from source.  Source: https://mvapich.cse.ohio-state.edu

    The predecessor of MVAPICH 3: it drives InfiniBand (verbs) and Omni-Path (PSM2) directly, and uses TCP elsewhere. It
    is based on MPICH 3.2, so its library is ``libmpi.so.12`` too. Request it with ``--set mpi.provider=mvapich2``.
    """

    name = "mvapich2"
    needs = (need("gnu"), need("fabric", when=_by_psm2))
    ranks_print = ("mpiname", "MVAPICH2")

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """After all others, and not on Omni-Path without PSM2, which is for x86-64 alone."""
        if facts.fabric.kind == "omni-path" and facts.architecture != "x86_64":
            return None
        return super().preference(facts)

    def packages(self, ctx: Context) -> Packages:
        """What its ``configure`` asks for; on InfiniBand the libraries that it drives it by."""
        if not _verbs(ctx):
            return Packages(build=TOOLS, run=ZLIB)
        build = {name: [*tools, *VERBS[name][0]] for name, tools in TOOLS.items()}
        return Packages(build=build, run={name: [*zlib, *VERBS[name][1]] for name, zlib in ZLIB.items()})

    def below(self, ctx: Context) -> list[str]:
        """Verbs, PSM2 or TCP. Source: github.com/spack/spack-packages mvapich2/package.py."""
        if _verbs(ctx):
            return ["--with-device=ch3:mrail", "--with-rdma=gen2", "--disable-mcast"]
        if ctx.has("fabric"):
            psm2 = ctx.use("fabric")
            return [
                "--with-device=ch3:psm",
                f"--with-psm2={psm2.prefix if psm2.options.install == 'source' else '/usr'}",
            ]
        return ["--with-device=ch3:nemesis"]

    def providers(self, ctx: Context) -> tuple[str, ...]:
        if _verbs(ctx):
            return ("verbs",)
        return ("psm2",) if ctx.has("fabric") else ("tcp",)

    def notices(self, ctx: Context) -> list[str]:
        """That it does not use a fabric."""
        kind = ctx.facts.fabric.kind
        if kind in ("slingshot", "efa"):
            return [f"mvapich2 has no driver for {kind}: its ranks use TCP"]
        return []


def _verbs(ctx: Context) -> bool:
    return ctx.facts.fabric.kind == "infiniband"
