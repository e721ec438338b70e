"""Bases, trust, compilers, MPI and fabric blocks: what a person would notice in the image."""

from __future__ import annotations

import subprocess
from typing import Any

import msgspec
import pytest

from hpcgen.blocks.base import Block, Chosen, Context, Facts, Situation
from hpcgen.blocks.requirements import in_range, version_range
from hpcgen.blocks.sources import Supply
from hpcgen.blocks.steps import Archive, Run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.network import AptMirror, Internet, Mirrors, Network, Proxy
from hpcgen.core.model.nodes import Cpu, Fabric, Gpu, Memory
from hpcgen.core.model.site import Partition

CATALOG = Catalog()
BLOCKS = ["ubuntu", "debian", "rockylinux", "site_trust", "gnu", "os_packages", "intel_mpi", "mpich"]
BLOCKS += ["libfabric", "psm2", "cuda", "cudnn", "nccl", "rank_test"]


def facts(
    *,
    fabric: str = "none",
    mpi: HostMpi | None = None,
    gpu: Gpu | None = None,
    architecture: str = "x86_64",
    certificates: tuple[str, ...] = (),
    proxy: Proxy | None = None,
    mirrors: Mirrors | None = None,
) -> Facts:
    partition = Partition(cpu=Cpu(target="broadwell", cores=20), memory=Memory(total_gb=64), gpu=gpu)
    network = Network(
        internet=Internet(login=True, compute=False),
        ca_certificates=list(certificates),
        proxy=proxy,
        mirrors=mirrors or Mirrors(),
    )
    kind: Any = fabric
    return Facts(partition, Fabric(kind=kind), mpi, network, architecture)


def intel_host(version: str, flavour: Any = "intel", abi: Any = "mpich") -> HostMpi:
    return HostMpi(flavour=flavour, version=version, abi=abi, root="/opt/host", launcher="mpiexec")


def chosen(name: str, version: str, **options: Any) -> Chosen:
    block = CATALOG.block(name)
    return Chosen(name, version, msgspec.convert(options, block.Options), CATALOG.releases(name)[version])


def context(
    name: str,
    version: str,
    site: Facts | None = None,
    base: tuple[str, str] = ("debian", "12"),
    others: dict[str, Chosen] | None = None,
    **options: Any,
) -> tuple[Block, Context]:
    ctx = Context(
        me=chosen(name, version, **options),
        facts=site or facts(),
        others=others or {},
        base=chosen(*base),
        flags=(),
        supply=Supply((site or facts()).network),
        find_wheels=lambda name, fallback: getattr(CATALOG.beside.wheels(name), "lines", None),
        find_file=CATALOG.beside.text_file,
    )
    return CATALOG.block(name)(), ctx


def text(steps: Any) -> str:
    """Everything that steps say: where files go and their lines, then the commands."""
    found = []
    for step in steps:
        for file in step.files:
            found += [f"{file.target}: {line}" for line in file.text.splitlines()]
        found += step.commands
    return "\n".join(found)


def newest(name: str) -> str:
    from packaging.version import Version

    return max(CATALOG.releases(name), key=Version)


# every block


@pytest.mark.parametrize("name", BLOCKS)
def test_every_release_says_where_it_is_from(name: str) -> None:
    for version, release in CATALOG.releases(name).items():
        assert release.source is not None, version
        for archive in release.archives.values():
            assert archive.url.startswith("https://")


@pytest.mark.parametrize("name", BLOCKS)
def test_no_archive_is_in_two_releases(name: str) -> None:
    hashes = [archive.sha256 for release in CATALOG.releases(name).values() for archive in release.archives.values()]
    assert len(hashes) == len(set(hashes))


@pytest.mark.parametrize("name", BLOCKS)
def test_every_range_is_a_range(name: str) -> None:
    for release in CATALOG.releases(name).values():
        for ranges in (release.accepts, release.on, release.host):
            for value in ranges.values():
                version_range(value)


def _others_for(name: str) -> dict[str, Chosen]:
    gnu = chosen("gnu", "12.2.0")
    known = {
        "gnu": gnu,
        "cuda": chosen("cuda", "11.8.0"),
        "libfabric": chosen("libfabric", "2.1.0"),
        "mpi": chosen("intel_mpi", "2021.17.2"),
        "fabric": chosen("psm2", "11.2.185"),
        "psm2": chosen("psm2", "11.2.185"),
    }
    return known if CATALOG.block(name).needs else {}


@pytest.mark.parametrize("name", BLOCKS)
def test_each_command_of_a_step_is_one_simple_command(name: str) -> None:
    versions = {"cuda": "13.3.0", "cudnn": "8.9.7.29", "nccl": "2.16.2", "mpich": "5.0.1"}
    site = facts(
        fabric="omni-path",
        certificates=("/etc/ssl/a.pem",),
        mirrors=Mirrors(apt={"debian": AptMirror(archive="http://mirror.example/debian")}),
    )
    block, ctx = context(name, versions.get(name, newest(name)), site, others=_others_for(name))
    steps: list[Run] = [*block.build(ctx)]
    for stage in ("builder", "final"):
        steps += [*block.prepare(ctx, stage), *block.finish(ctx, stage)]
    for step in steps:
        for line in step.commands:
            words = line.replace("'%s\\n'", "") if not line.startswith("printf") else ""
            assert not any(sign in words for sign in ("&&", "||", ";", "`", "\n")), line


# bases


def test_a_base_has_the_tools_to_fetch_in_the_builder_alone() -> None:
    for base in (("ubuntu", "22.04"), ("debian", "12")):
        block, ctx = context(*base)
        packages = block.packages(ctx)
        assert {"ca-certificates", "curl", "xz-utils"} <= set(packages.build["apt"])
        assert not packages.run


def test_rocky_linux_keeps_its_own_curl() -> None:
    block, ctx = context("rockylinux", "9", base=("rockylinux", "9"))
    assert "curl" not in block.packages(ctx).build["dnf"]


# site_trust


def test_certificates_work_before_the_package_that_maintains_them_is_there() -> None:
    site = facts(certificates=("/etc/pki/site/root ca.pem".replace(" ", "_"), "/etc/pki/other/root_ca.crt"))
    block, ctx = context("site_trust", "1", site)
    targets = [file.target for file in block.host_files(ctx)]
    # Debian's tool takes files that end in .crt alone, and two of one name must not become one.
    assert targets == [
        "/usr/local/share/ca-certificates/root_ca.crt",
        "/usr/local/share/ca-certificates/root_ca-2.crt",
    ]
    for stage in ("builder", "final"):
        steps = list(block.prepare(ctx, stage))
        before = text(steps)
        for target in targets:
            assert f"cat {target} >> /etc/ssl/certs/ca-certificates.crt" in before
    assert "update-ca-certificates" in text(block.build(ctx))
    assert "update-ca-certificates" in text(block.finish(ctx, "final"))
    assert "ca-certificates" in block.packages(ctx).run["apt"]


def test_certificates_on_rocky_linux() -> None:
    site = facts(certificates=("/etc/site.pem",))
    block, ctx = context("site_trust", "1", site, base=("rockylinux", "9"))
    assert block.host_files(ctx)[0].target == "/etc/pki/ca-trust/source/anchors/site.crt"
    assert text(block.prepare(ctx, "final")) == "update-ca-trust extract"


def test_the_proxy_is_an_argument_and_never_a_variable_of_the_image() -> None:
    site = facts(proxy=Proxy(http="http://proxy.example:3128", no_proxy="localhost"))
    block, ctx = context("site_trust", "1", site)
    environment = block.environment(ctx)
    assert environment.arguments == {
        "http_proxy": "http://proxy.example:3128",
        "HTTP_PROXY": "http://proxy.example:3128",
        "no_proxy": "localhost",
        "NO_PROXY": "localhost",
    }
    assert not environment.both
    assert not environment.build


def test_the_mirror_is_used_and_no_trace_of_it_stays() -> None:
    mirror = AptMirror(archive="http://mirror.example/debian", security="http://mirror.example/security")
    site = facts(mirrors=Mirrors(apt={"debian": mirror}, pip="https://mirror.example/simple"))
    block, ctx = context("site_trust", "1", site)
    for stage in ("builder", "final"):
        steps = list(block.prepare(ctx, stage))
        before = text(steps)
        assert "http://mirror.example/debian bookworm main" in before
        assert "http://mirror.example/debian bookworm-updates main" in before
        assert "http://mirror.example/security bookworm-security main" in before
        written = {file.target for step in steps for file in step.files}
        assert written
        after = text(block.finish(ctx, stage))
        assert all(path in after for path in written), (stage, written, after)
    assert "pip.conf" in text(block.prepare(ctx, "builder"))
    assert "pip.conf" not in text(block.prepare(ctx, "final"))


def test_security_updates_of_ubuntu_come_from_its_one_archive() -> None:
    site = facts(mirrors=Mirrors(apt={"ubuntu": AptMirror(archive="http://mirror.example/ubuntu")}))
    block, ctx = context("site_trust", "1", site, base=("ubuntu", "22.04"))
    assert "http://mirror.example/ubuntu jammy-security main universe" in text(block.prepare(ctx, "final"))


def test_a_mirror_of_another_distribution_changes_nothing() -> None:
    site = facts(mirrors=Mirrors(apt={"ubuntu": AptMirror(archive="http://mirror.example/ubuntu")}))
    block, ctx = context("site_trust", "1", site)
    assert not [*block.prepare(ctx, "builder"), *block.finish(ctx, "builder")]


def test_a_site_that_needs_no_trust_gets_no_step() -> None:
    block, ctx = context("site_trust", "1")
    steps = [*block.build(ctx)]
    for stage in ("builder", "final"):
        steps += [*block.prepare(ctx, stage), *block.finish(ctx, stage)]
    assert not steps
    assert not block.packages(ctx).build


# gnu


def test_plain_gcc_means_the_chosen_one() -> None:
    block, ctx = context("gnu", "11.3.0")
    assert "g++-11" in block.packages(ctx).build["apt"]
    assert block.environment(ctx).build == {"CC": "/usr/bin/gcc-11", "CXX": "/usr/bin/g++-11"}
    steps = text(block.build(ctx))
    assert "ln -sf /usr/bin/gcc-11 /usr/local/bin/gcc" in steps
    assert "ln -sf g++ /usr/local/bin/c++" in steps


def test_only_run_time_libraries_of_the_compiler_are_in_the_image() -> None:
    block, ctx = context("gnu", "12.2.0", fortran=True)
    packages = block.packages(ctx)
    assert "gfortran-12" in packages.build["apt"]
    assert packages.run["apt"] == ["libgomp1", "libstdc++6", "libgfortran5"]
    assert "FC" in block.environment(ctx).build


def test_the_distribution_default_needs_no_links() -> None:
    block, ctx = context("gnu", "11.5.0", base=("rockylinux", "9"))
    assert not [*block.build(ctx)]
    assert block.packages(ctx).build["dnf"] == ["gcc", "gcc-c++", "glibc-devel", "make"]


# os_packages


@pytest.mark.parametrize("bad", ["-y", "a b", "a;b", "$(id)", "", "a\n", "../x"])
def test_a_package_name_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises((msgspec.ValidationError, InputError)):
        chosen("os_packages", "1", packages=[bad])


def test_named_packages_are_in_both_stages() -> None:
    block, ctx = context("os_packages", "1", packages=["vim", "libnuma1", "vim"])
    packages = block.packages(ctx)
    assert packages.build == packages.run == {"apt": ["libnuma1", "vim"]}
    block, ctx = context("os_packages", "1", packages=["vim", "libnuma1", "vim"], build_only=["vim"])
    packages = block.packages(ctx)
    assert packages.build == {"apt": ["libnuma1", "vim"]} and packages.run == {"apt": ["libnuma1"]}


# intel_mpi


def test_intel_mpi_is_not_newer_than_the_hosts() -> None:
    block = CATALOG.block("intel_mpi")

    def allowed(host: str) -> list[str]:
        (wanted,) = block.site_ranges(facts(mpi=intel_host(host)))
        assert wanted.path == "mpi.version"
        return [version for version in CATALOG.releases("intel_mpi") if in_range(version, wanted.versions)]

    assert allowed("2019.6.166") == ["2019.4.243", "2019.5.281", "2019.6.166"]
    assert allowed("2019.6.154") == allowed("2019.6.166")  # another build of the same update
    assert allowed("2021.11.0") == ["2021.4.0", "2021.8.0", "2021.11.0"]
    assert not block.site_ranges(facts(mpi=intel_host("4.2", flavour="mpich")))
    assert not block.site_ranges(facts())


def test_which_mpi_suits_which_site() -> None:
    intel, mpich = CATALOG.block("intel_mpi"), CATALOG.block("mpich")
    beside_intel = facts(mpi=intel_host("2021.11"))
    assert (intel.preference(beside_intel), mpich.preference(beside_intel)) == (0, 1)
    alone = facts()
    assert (intel.preference(alone), mpich.preference(alone)) == (1, 0)
    cray = facts(mpi=intel_host("8.1", flavour="cray-mpich"))
    assert (intel.preference(cray), mpich.preference(cray)) == (1, 0)
    other_abi = facts(mpi=intel_host("4.1", flavour="openmpi", abi="openmpi"))
    assert (intel.preference(other_abi), mpich.preference(other_abi)) == (None, None)
    assert intel.preference(facts(architecture="aarch64")) is None


@pytest.mark.parametrize("version", ["2021.4.0", "2021.8.0", "2021.11.0", "2021.13.1", "2021.15.0", "2021.17.2"])
def test_intel_mpi_wheels_are_hashed_and_complete(version: str) -> None:
    block, ctx = context("intel_mpi", version)
    (wheels,) = block.inputs(ctx)
    assert wheels.hashed  # type: ignore[union-attr]
    lines = wheels.requirements  # type: ignore[union-attr]
    assert [line.split("==")[0] for line in lines] == ["impi-devel", "impi-rt"]
    assert all(f"=={version} --hash=sha256:" in line for line in lines)
    build = text(block.build(ctx))
    assert "--require-hashes" in build
    assert "--prefix /opt/intel_mpi" in build


def test_a_bound_host_mpi_brings_its_own_providers() -> None:
    # Old wheels keep the providers in a folder of their own, without which every rank aborts. It is named in
    # LD_LIBRARY_PATH, which a host's folders precede, and not in FI_PROVIDER_PATH, which nothing precedes.
    for version, folders in (("2021.13.1", ["", "/libfabric", "/libfabric/prov"]), ("2021.17.2", [""])):
        block, ctx = context("intel_mpi", version)
        environment = block.environment(ctx)
        assert environment.both == {"I_MPI_ROOT": "/opt/intel_mpi"}
        assert environment.paths["LD_LIBRARY_PATH"] == [f"/opt/intel_mpi/lib{folder}" for folder in folders]


def test_intel_mpi_2019_comes_from_the_installer() -> None:
    block, ctx = context("intel_mpi", "2019.6.166")
    (installer,) = block.inputs(ctx)
    assert isinstance(installer, Archive)
    assert installer.name == "l_mpi_2019.6.166.tgz"
    assert "cpio" in block.packages(ctx).build["apt"]
    assert "ACCEPT_EULA=accept" in text(block.build(ctx))
    assert block.environment(ctx).paths["PATH"] == ["/opt/intel_mpi/intel64/bin"]
    assert ctx.release.source is not None
    assert ctx.release.source.verified == "no"


def test_the_licences_are_named() -> None:
    for name, version, word in (
        ("intel_mpi", "2021.17.2", "Intel"),
        ("cuda", "12.9.1", "NVIDIA"),
        ("cudnn", "8.9.7.29", "NVIDIA"),
    ):
        block, ctx = context(name, version)
        assert word in " ".join(block.details(ctx))


def test_psm2_is_wanted_on_omni_path_alone() -> None:
    for name in ("intel_mpi", "libfabric"):
        fabric = next(n for n in CATALOG.block(name).needs if n.name == "fabric")
        assert fabric.when is not None
        assert fabric.when(Situation(facts(fabric="omni-path"), None))
        assert not fabric.when(Situation(facts(fabric="infiniband"), None))
    preference = CATALOG.block("psm2").preference
    assert preference(facts(fabric="omni-path")) == 0
    assert preference(facts(fabric="omni-path", architecture="aarch64")) is None
    assert preference(facts(fabric="infiniband")) is None


# psm2, libfabric, mpich


def test_psm2_from_source_or_package() -> None:
    block, ctx = context("psm2", "11.2.185")
    assert block.runtime(ctx).copies == ("/opt/psm2",)
    assert "libnuma1" in block.packages(ctx).run["apt"]
    assert block.environment(ctx).paths == {"LD_LIBRARY_PATH": ["/opt/psm2/lib"]}
    block, ctx = context("psm2", "11.2.185", install="package")
    assert not [*block.build(ctx)]
    assert not block.inputs(ctx)
    assert not block.runtime(ctx).copies
    assert block.packages(ctx).run["apt"] == ["libpsm2-2"]


def test_libfabric_has_the_provider_of_the_fabric() -> None:
    psm2 = {"fabric": chosen("psm2", "11.2.185"), "psm2": chosen("psm2", "11.2.185")}
    block, ctx = context("libfabric", "2.1.0", facts(fabric="omni-path"), others=psm2)
    steps = text(block.build(ctx))
    assert "--enable-only" in steps
    assert "--enable-psm2=/opt/psm2" in steps
    assert "verbs" not in steps
    assert any(test.expect == "psm2:" for test in block.test(ctx))
    block, ctx = context("libfabric", "2.1.0", facts(fabric="infiniband"))
    assert "--enable-verbs=yes" in text(block.build(ctx))
    assert "libibverbs1" in block.packages(ctx).run["apt"]
    block, ctx = context("libfabric", "2.1.0")
    assert not block.packages(ctx).run


def test_mpich_is_built_over_the_chosen_libfabric() -> None:
    others = {"gnu": chosen("gnu", "12.2.0"), "libfabric": chosen("libfabric", "2.1.0")}
    block, ctx = context("mpich", "4.2.3", others=others)
    steps = text(block.build(ctx))
    assert "--with-device=ch4:ofi" in steps
    assert "--with-libfabric=/opt/libfabric" in steps
    assert "--disable-fortran" in steps
    # A libhwloc that only the builder has would be missing in the image.
    assert "--with-hwloc=embedded" in steps
    block, ctx = context("mpich", "4.2.3", others=others, fortran=True)
    assert "FFLAGS=-fallow-argument-mismatch" in text(block.build(ctx))


def test_no_mpich_of_another_abi() -> None:
    assert all(version.startswith(("3.4.", "4.", "5.")) for version in CATALOG.releases("mpich"))


# rank_test


def test_rank_test_is_compiled_from_its_text() -> None:
    block, ctx = context("rank_test", "1", others={"mpi": chosen("intel_mpi", "2021.17.2")})
    steps = text(block.build(ctx))
    assert "MPI_Allreduce" in steps
    assert "HPCGEN_RANKS" in steps
    assert "mpicc -O2 -rdynamic -o /opt/rank_test/bin/rank_test" in steps
    assert CATALOG.stack("mpi-hello").run.command == ["/opt/rank_test/bin/rank_test"]


def test_a_rank_test_that_is_not_there_fails_its_self_test() -> None:
    """ldd of a missing file prints nothing that could be not found."""
    block, ctx = context("rank_test", "1", others={"mpi": chosen("intel_mpi", "2021.17.2")})
    (test,) = block.test(ctx)
    assert subprocess.run(["sh", "-c", test.command], capture_output=True).returncode != 0


def test_every_provider_of_a_virtual_provides_it() -> None:
    for virtual, providers in CATALOG.virtuals.items():
        for name in providers:
            if name in BLOCKS:
                assert virtual in CATALOG.block(name).provides
