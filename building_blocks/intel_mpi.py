"""Intel MPI, in the host's version or an older one of the same generation."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.mpi_abi import HOST_SETTINGS, wanted_abi
from hpcgen.blocks.base import Block, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import INTEL_EULA, INTEL_SIMPLIFIED, Capabilities, Licence
from hpcgen.blocks.prefix_wheels import python_to_unpack, unpack_wheels
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, lines, run
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.release import Value

UNPACKED = f"{SCRATCH}/intel-mpi"
INSTALLED = f"{SCRATCH}/intel-mpi-installed"


def _on_omni_path(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "omni-path"


def _on_infiniband(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "infiniband"


class IntelMpi(Block):
    """Intel MPI Library.  Source: https://www.intel.com/content/www/us/en/developer/tools/oneapi/mpi-library.html

    Its library is ``libmpi.so.12``, a name that it shares with MPICH, Cray MPICH and MVAPICH2, so that a host's Intel
    MPI can replace it at run time. The version is not newer than the host's, which would lack newer functions.

    2021 comes from the wheels ``impi-rt`` and ``impi-devel``, installed by a Python of the distribution that
    stays in the builder; 2019 from Intel's installer. Both bring libfabric with its providers, but not what these
    are linked with: ``psm2`` wants the PSM2 library and ``mlx`` wants UCX, which are blocks, ``verbs`` rdma-core.
    """

    name = "intel_mpi"
    provides = ("mpi",)
    needs = (
        need("gnu", build_only=True),
        need("fabric", when=_on_omni_path),
        need("ucx", when=_on_infiniband),
    )

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Best where the host's MPI is Intel's; of no use beside another ABI, or without x86-64."""
        if facts.architecture != "x86_64" or (facts.mpi is not None and wanted_abi(facts.mpi) != "mpich"):
            return None
        return 0 if facts.mpi is not None and facts.mpi.flavour == "intel" else 1

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """The host's generation (2019 or 2021), in no newer update; the builds of an update have the same functions."""
        host = facts.mpi
        if host is None or host.flavour != "intel":
            return []
        generation, *update = host.version.split(".")[:2]
        newest = f"<{generation}.{int(update[0]) + 1}" if update and update[0].isdigit() else f"<={host.version}"
        reason = f"the host's Intel MPI {host.version}, which replaces the image's: same generation, not newer"
        return [SiteRange(f">={generation},{newest}", "mpi.version", reason)]

    def inputs(self, ctx: Context) -> list[Input]:
        """The installer, or the wheels."""
        return [self._wheels(ctx)] if self._from_wheels(ctx) else [ctx.archive("installer")]

    def packages(self, ctx: Context) -> Packages:
        """A Python to install wheels with, or what Intel's installer asks for."""
        # rdma-core, which its verbs is linked with, comes with UCX.
        if self._from_wheels(ctx):
            return python_to_unpack()
        return Packages(build={"apt": ["cpio"], "dnf": ["cpio", "which"], "zypper": ["cpio", "which"]})

    def environment(self, ctx: Context) -> Environment:
        """Its root, programs and libraries.

        Providers are found through LD_LIBRARY_PATH, where a host's come first if they are bound. A fixed
        FI_PROVIDER_PATH would give the image's to the host's libfabric; 2019 may not do without it.
        """
        top = self._top(ctx)
        variables = {"I_MPI_ROOT": ctx.prefix}
        providers = ctx.release.values.get("providers")
        if providers is not None:
            variables["FI_PROVIDER_PATH"] = f"{top}/{providers}"
        libraries = [f"{top}/{folder}" for folder in _list(ctx.release.values["libraries"])]
        return Environment(both=variables, paths={"PATH": [f"{top}/bin"], "LD_LIBRARY_PATH": libraries})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it into the prefix."""
        yield from self._install_wheels(ctx) if self._from_wheels(ctx) else self._install_archive(ctx)

    def runtime(self, ctx: Context) -> Runtime:
        """The whole prefix, so that the image can also start ranks on one node by itself."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """The library that programs are linked with is there; without a host MPI, two ranks really start."""
        libmpi = f"{self._top(ctx)}/{ctx.release.values['libmpi']}"
        tests = [
            Test("library", f"ldd {libmpi}", expect="libc.so.6 => /"),
            Test("launcher", "mpiexec.hydra --version", expect="Intel(R) MPI Library"),
        ]
        if ctx.facts.mpi is None:
            ranks = "I_MPI_HYDRA_BOOTSTRAP=fork mpiexec.hydra -n 2 IMB-MPI1 -iter 10 -msglog 0:1 PingPong"
            tests.append(Test("two ranks", ranks, expect="#processes = 2"))
        if ctx.has("ucx"):
            folder = (
                f"{self._top(ctx)}/{_list(ctx.release.values.get('providers', ctx.release.values['libraries']))[-1]}"
            )
            for name in self._for_infiniband(ctx):
                file = "libverbs*-fi.so" if name == "verbs" else f"lib{name}-fi.so"
                missing = f"ls {folder}/{file} && ldd {folder}/{file} | grep -c 'not found' | grep -qx 0"
                tests.append(Test(f"provider {name}", missing))
        return tests

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts Intel's licence."""
        return [f"The build accepts the {self._licence(ctx).title} for Intel MPI {ctx.version}."]

    def capabilities(self, ctx: Context) -> Capabilities:
        """MPICH's ABI, the providers whose libraries are in the image, and Intel's licence.

        ``pmi2`` was seen with Slurm and without ``I_MPI_PMI_LIBRARY``; for ``pmix`` it loads a libpmix that the
        image has not, and comes up as jobs of one rank. ``efa`` and ``psm3`` are among its files, but want libraries
        that nothing here brings: libefa, libnuma.
        """
        fast = ("psm2",) if ctx.has("fabric") else self._for_infiniband(ctx) if ctx.has("ucx") else ()
        return Capabilities(
            mpi_abi="mpich",
            mpi_flavour="intel",
            mpi_library="libmpi.so.12",
            pmi=("hydra", "pmi", "pmi2"),
            providers=(*fast, "rxm", "shm", "tcp"),
            licences=(self._licence(ctx),),
            host_settings=HOST_SETTINGS["intel"],
        )

    def _install_wheels(self, ctx: Context) -> Iterable[Run]:
        yield unpack_wheels(ctx, self._wheels(ctx), "intel-mpi", f"rm -rf {ctx.prefix}/lib/python3*")

    def _install_archive(self, ctx: Context) -> Iterable[Run]:
        answers = f"{SCRATCH}/intel_mpi.cfg"
        settings = [
            "ACCEPT_EULA=accept",
            "CONTINUE_WITH_OPTIONAL_ERROR=yes",
            "CONTINUE_WITH_INSTALLDIR_OVERWRITE=yes",
            f"PSET_INSTALL_DIR={INSTALLED}",
            "PSET_MODE=install",
            "COMPONENTS=ALL",
        ]
        yield run("fetch", ctx.unpack(ctx.archive("installer"), UNPACKED))
        yield run(
            "install",
            TextFile("files/settings/intel_mpi.cfg", answers, lines(*settings)),
            command("cd", UNPACKED),
            command("./install.sh", "-s", answers),
        )
        wrappers = " ".join(f"{self._top(ctx)}/bin/{name}" for name in ("mpif77", "mpif90", "mpigcc", "mpigxx"))
        yield run(
            "move",
            command("mkdir", "-p", ctx.prefix),
            # "/." follows the link to the suite's folder that the installer makes.
            command("cp", "-a", f"{INSTALLED}/impi/{ctx.version}/.", ctx.prefix),
            f"sed -i 's|^prefix=.*|prefix={ctx.prefix}|' {wrappers}",
            command("rm", "-rf", UNPACKED, INSTALLED),
            joins="previous",
        )

    @staticmethod
    def _for_infiniband(ctx: Context) -> tuple[str, ...]:
        # mlx is complete from Update 6 of 2019 on.  Source: intel.com, article 659585
        return ("mlx", "verbs") if ctx.me.at_least("2019.6") else ("verbs",)

    @classmethod
    def _licence(cls, ctx: Context) -> Licence:
        return INTEL_SIMPLIFIED if cls._from_wheels(ctx) else INTEL_EULA

    @staticmethod
    def _from_wheels(ctx: Context) -> bool:
        return ctx.release.values["obtain"] == "wheels"

    @staticmethod
    def _wheels(ctx: Context) -> Wheels:
        return ctx.wheels(f"intel-mpi-{ctx.version}", [f"impi-rt=={ctx.version}", f"impi-devel=={ctx.version}"])

    @staticmethod
    def _top(ctx: Context) -> str:
        root = ctx.release.values.get("root")
        return f"{ctx.prefix}/{root}" if root is not None else ctx.prefix


def _list(value: Value) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
