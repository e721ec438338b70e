"""MPICH from source or as the project's wheel, with the library name that Intel's and Cray's MPI share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hpcgen.backends.hardware.mpi_abi import HOST_SETTINGS, MPI_LIBRARIES, STANDARD, mpich_of, wanted_abi
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.prefix_wheels import from_source, from_wheels, install_prefix_wheel, prefix_wheel
from hpcgen.blocks.rank_test import DEBUG, PROVIDER_IS
from hpcgen.blocks.rdma_packages import RDMA_LIBRARIES
from hpcgen.blocks.standard_mpi import by_standard
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Test, command, complete
from hpcgen.core.errors import ConflictError

SLOW_PROVIDERS = ("rxm", "shm", "sockets", "tcp", "udp")
"""What the libfabric of the wheels has compiled in; its psm2, verbs and efa are plugins."""


def _wheels_on_omni_path(situation: Situation) -> bool:
    return from_wheels(situation) and situation.facts.fabric.kind == "omni-path"


FIRST_STANDARD = "5.0.2"
"""Seen in the wheels: those of 5.0.0 and 5.0.1 call the standard's library ``libmpi_abi.so.0``."""


class Mpich(AutotoolsBlock):
    """MPICH over libfabric from source, or the project's wheel over UCX and libfabric.  Source: https://www.mpich.org

    Not from the distribution, because the library must be called ``libmpi.so.12``, which a host's Intel MPI, MPICH,
    MVAPICH2 or Cray MPICH can replace; the distributions call theirs ``libmpich.so.12``, which nothing can replace.

    The wheel (github.com/mpi4py/mpi-publish) is installed in seconds and needs no compiler. It has C and C++, Hydra,
    and a UCX and a libfabric of its own, whose plugins for InfiniBand and Omni-Path want libraries that it lacks: these
    are the distribution's rdma-core, and PSM2, a block. Nothing in it drives Slingshot.

    5.0.2 also has the library of the MPI 5 standard, ``libmpi_abi.so.1``, and ``mpicc_abi``, which links with it. Where
    the profile says ``mpi.abi: mpi5``, programs are linked by that, and any MPI with that library can take its place.

    It sends from the node's memory alone. Compiled with CUDA, it is linked with the driver's library and starts on no
    machine without a GPU, so neither where images are built; nor does it with ROCm before 4.3.2. ``openmpi`` knows
    both. Source: pmodels/mpich issues 6667 and 6725, pmodels/yaksa issue 262. For Level Zero its yaksa wants Intel's
    offline compiler, ocloc, which Debian 12 has not (4.0.2 was configured with it); ``intel_mpi`` serves Intel's GPUs.

    Processes are started by Hydra in the image or by the host's launcher. MPICH speaks PMI-1 by itself, which
    Hydra and Slurm's ``pmi2`` both serve; PMIx it has not.
    """

    name = "mpich"
    provides = ("mpi",)
    passes_on = {"fortran": ("gnu",)}
    needs = (
        need("gnu", when=from_source),
        need("libfabric", when=from_source),
        need("python", ">=3.8", build_only=True, when=from_wheels),
        need("fabric", when=_wheels_on_omni_path),
    )

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran bindings, which need a Fortran compiler.

        ``obtain``: compiled from ``source``, or the project's ``wheels``, which have no Fortran.
        """

        fortran: bool = False
        obtain: Literal["source", "wheels"] = "source"

        def __post_init__(self) -> None:
            if self.fortran and self.obtain == "wheels":
                raise ValueError("the wheels have no Fortran bindings: fortran=false, or obtain=source")

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Where the host's MPI, if there is one, has the standard's ABI or MPICH's, for which Intel's may be better."""
        if facts.mpi is None:
            return 0
        wanted = wanted_abi(facts.mpi)
        if wanted not in ("mpich", STANDARD):
            return None
        return 1 if facts.mpi.flavour == "intel" and wanted == "mpich" else 0

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The standard's library is in the wheel: by these steps nobody has compiled one."""
        return {"obtain": "wheels"} if by_standard(facts) else {}

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Not newer than the host's MPICH, of the generation of its Cray MPICH; or with the standard's library."""
        host = facts.mpi
        if host is None or not host.shown_inside:
            return []
        if by_standard(facts):
            reason = f"programs are linked with {MPI_LIBRARIES[STANDARD]}, which releases before have by another name"
            return [SiteRange(f">={FIRST_STANDARD}", "mpi.abi", reason)]
        if host.flavour == "mpich":
            return [SiteRange(f"<={host.version}", "mpi.version", f"the host's MPICH {host.version} replaces it")]
        base = mpich_of(host.version) if host.flavour == "cray-mpich" else ""
        if not base:
            return []
        reason = f"the host's Cray MPICH {host.version}, which replaces it, is based on MPICH {base}"
        return [SiteRange(f"<{int(base.split('.')[0]) + 1}", "mpi.version", reason)]

    def inputs(self, ctx: Context) -> list[Input]:
        """The archive, or the wheel, which is refused where the fabric is one that it cannot drive."""
        if ctx.options.obtain == "source":
            return [ctx.archive()]
        if ctx.facts.fabric.kind == "slingshot" and not _replaced(ctx):
            raise ConflictError(
                "the wheels of mpich have no provider for Slingshot, and the host's MPI does not take their place",
                remedy="--set mpich.obtain=source",
            )
        return [prefix_wheel(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """Python, which the configure of 5.0 asks for; rdma-core for the wheel's UCX on InfiniBand."""
        if ctx.options.obtain == "source":
            # Source: github.com/spack/spack-packages@1e8cf059: mpich/package.py
            python = ["python3"] if ctx.me.at_least("5.0") else []
            return Packages(build={"apt": python, "dnf": python, "zypper": python} if python else {})
        if ctx.facts.fabric.kind != "infiniband":
            return Packages()
        return Packages(run=RDMA_LIBRARIES)

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries, and its place for build scripts; what a wheel uses of the two that it brings.

        Its libfabric opens no plugin unless it is told where they are; a host's would be told the same.
        """
        variables = {"MPI_HOME": ctx.prefix}
        if ctx.options.obtain == "wheels" and not _replaced(ctx):
            variables["MPIR_CVAR_CH4_NETMOD"] = _netmod(ctx)
            if ctx.has("fabric"):
                variables["FI_PROVIDER_PATH"] = f"{ctx.prefix}/lib/mpich/libfabric"
        return Environment(
            both=variables,
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

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile it, or unpack the wheel."""
        yield from super().build(ctx) if ctx.options.obtain == "source" else install_prefix_wheel(ctx)

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return super().artifact(ctx) if ctx.options.obtain == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """The library has the shared name; the launcher says its version; a wheel's ranks start, where they are to."""
        if ctx.options.obtain == "wheels":
            return _wheel_tests(ctx)
        return [
            Test("library", f"ls {ctx.prefix}/lib", expect=_library(ctx)),
            Test("launcher", "mpiexec --version", expect=ctx.version),
            Test("provider", "mpichversion", expect="ch4:ofi"),
        ]

    def capabilities(self, ctx: Context) -> Capabilities:
        """MPICH's ABI, or the standard's; PMI-1 alone, which Hydra and Slurm's pmi2 serve.

        The providers are libfabric's to say, or the wheel's: psm2 where PSM2 is beside it, UCX where rdma-core is.
        """
        providers: tuple[str, ...] = ()
        if ctx.options.obtain == "wheels":
            fast = [name for name, there in (("psm2", ctx.has("fabric")), ("ucx", _netmod(ctx) == "ucx")) if there]
            providers = (*fast, *SLOW_PROVIDERS)
        return Capabilities(
            mpi_abi=STANDARD if by_standard(ctx.facts) else "mpich",
            mpi_flavour="mpich",
            mpi_library=_library(ctx),
            pmi=("hydra", "pmi", "pmi2"),
            providers=providers,
            host_settings=HOST_SETTINGS["mpich"],
        )


def _replaced(ctx: Context) -> bool:
    """Whether the host's MPI takes the image's place."""
    return ctx.facts.mpi is not None and ctx.facts.mpi.shown_inside


def _library(ctx: Context) -> str:
    """The library that programs are linked with."""
    return MPI_LIBRARIES[STANDARD if by_standard(ctx.facts) else "mpich"]


def _netmod(ctx: Context) -> str:
    """UCX where it has a card to drive: over it, ranks in containers of their own do not find each other by memory."""
    return "ucx" if ctx.facts.fabric.kind == "infiniband" else "ofi"


def _wheel_tests(ctx: Context) -> list[Test]:
    library, plugins = f"{ctx.prefix}/lib/{_library(ctx)}", f"{ctx.prefix}/lib/mpich"
    tests = [
        Test("library", complete(library)),
        Test("launcher", "mpiexec --version", expect=ctx.version),
        Test("devices", "mpichversion", expect="ch4:"),
    ]
    if ctx.has("fabric"):
        tests.append(Test("provider psm2", complete(f"{plugins}/libfabric/libpsmx2-fi.so")))
    if _netmod(ctx) == "ucx":
        tests.append(Test("InfiniBand", complete(f"{plugins}/ucx/libuct_ib_mlx5.so.0")))
    if not _replaced(ctx):
        # With nothing around it of a launcher, for the self-test may be a rank.
        said = {name: value for name, value in DEBUG.items() if name.startswith("MPIR_")}
        kept = {"PATH": f"{ctx.prefix}/bin:/usr/bin:/bin", "MPIR_CVAR_CH4_NETMOD": _netmod(ctx), **said}
        words = [f"{name}={value}" for name, value in kept.items()]
        ranks = command("env", "-i", *words, "mpiexec", "-launcher", "fork", "-n", "2", "mpivars")
        expected = PROVIDER_IS if _netmod(ctx) == "ofi" else "MPI Control Variables"
        tests.append(Test("two ranks", ranks, expect=expected.strip()))
    return tests
