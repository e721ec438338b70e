"""MPI and the libraries below it: which is chosen where, what it promises a host, and that its recipes can be read."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.requirements import in_range, version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.planning.planner import make_plan
from tests.conftest import ROOT
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, intel_host, newest, text

TOOLS = Path(sysconfig.get_path("scripts"))
BLOCKS = ["openmpi", "ucx", "pmix", "hwloc", "libevent"]
BELOW = {
    "gnu": chosen("gnu", "12.2.0"),
    "ucx": chosen("ucx", "1.18.1"),
    "libfabric": chosen("libfabric", "2.1.0"),
    "cuda": chosen("cuda", "12.9.1"),
    "rocm": chosen("rocm", newest("rocm")),
    "pmix": chosen("pmix", "5.0.10"),
    "hwloc": chosen("hwloc", "2.12.2"),
    "libevent": chosen("libevent", "2.1.12"),
}


def openmpi_host(version: str, libraries: tuple[str, ...] = ("/opt/host/lib",)) -> HostMpi:
    return HostMpi(
        flavour="openmpi",
        version=version,
        abi="openmpi",
        root="/opt/host",
        launcher="mpirun",
        libraries=list(libraries),
    )


def some(*names: str) -> dict[str, Any]:
    return {name: BELOW[name] for name in names}


def site(
    folder: Path, *, fabric: str = "none", mpi: dict[str, Any] | None = None, engine: str = "podman"
) -> tuple[Catalog, Any]:
    """A profile of a collection of its own, that allows every kind of engine."""
    profile: dict[str, Any] = {
        "name": "here",
        "title": "A cluster",
        "system": {"os": "rocky", "os_version": "8.10", "glibc": "2.28"},
        "partitions": {"cpu": {"cpu": {"target": "zen2", "cores": 64}, "memory": {"total_gb": 256}}},
        "default_partition": "cpu",
        "containers": {"preferred": engine, "engines": {"podman": {}, "apptainer": {}, "charliecloud": {}}},
        "scheduler": {"kind": "slurm"},
        "network": {"internet": {"login": True, "compute": False}},
        "fabric": {"kind": fabric},
    }
    if mpi is not None:
        profile["mpi"] = {"root": "/opt/host", "launcher": "srun", "pmi": ["pmix"], **mpi}
    (folder / "site_profiles").mkdir(exist_ok=True)
    (folder / "site_profiles" / "here.yaml").write_text(yaml.safe_dump(profile))
    catalog = Catalog([folder])
    return catalog, catalog.site("here")


def plan(folder: Path, *settings: str, format: Any = None, **of_site: Any) -> Plan:
    catalog, here = site(folder, **of_site)
    document = catalog.site_document("here")
    return make_plan(
        catalog, here, catalog.stack("mpi-hello"), settings=settings, format=format, site_document=document
    )


def versions(planned: Plan) -> dict[str, str]:
    return {block.name: block.version for block in planned.blocks}


OPEN_MPI = {
    "flavour": "openmpi",
    "version": "4.1.5",
    "abi": "openmpi",
    "libraries": ["/opt/host/lib"],
    "binds": [{"source": "/apps/openmpi", "target": "/opt/host"}],
}


# tables


@pytest.mark.parametrize("name", BLOCKS)
def test_every_release_says_where_it_is_from(name: str) -> None:
    for version, release in CATALOG.releases(name).items():
        assert release.source is not None, version
        assert release.licence, version
        for archive in release.archives.values():
            assert archive.url.startswith("https://")
            assert version in archive.url
        for asked in release.accepts.values():
            version_range(asked)


@pytest.mark.parametrize("name", BLOCKS)
def test_no_archive_is_in_two_releases(name: str) -> None:
    hashes = [archive.sha256 for release in CATALOG.releases(name).values() for archive in release.archives.values()]
    assert len(hashes) == len(set(hashes))


def test_hwloc_is_fetched_as_the_kind_of_archive_that_its_hashes_are_of() -> None:
    """Spack's hashes are of .tar.gz, whatever address its package.py shows first; 2.7.1's is in Open MPI 5.0.7 too.

    That of 2.14.0 is Homebrew's, of .tar.bz2.
    """
    for version, release in CATALOG.releases("hwloc").items():
        kind = "bz2" if version == "2.14.0" else "gz"
        assert release.archives["source"].url.endswith(f"/hwloc-{version}.tar.{kind}")


@pytest.mark.parametrize("name", BLOCKS)
def test_each_command_of_a_step_is_one_simple_command(name: str) -> None:
    version = {"openmpi": "5.0.10"}.get(name, newest(name))
    block, ctx = context(name, version, facts(fabric="infiniband"), others=BELOW)
    for step in block.build(ctx):
        for line in step.commands:
            words = "" if line.startswith("printf") else line
            assert not any(sign in words for sign in ("&&", "||", ";", "`", "\n")), line


# which is chosen


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        (None, "mpich"),
        (OPEN_MPI, "openmpi"),
        ({"flavour": "intel", "version": "2021.11.0", "abi": "mpich"}, "intel_mpi"),
        ({"flavour": "cray-mpich", "version": "8.1.27", "abi": "mpich"}, "mpich"),
    ],
)
def test_the_host_decides_which_mpi_an_image_has(tmp_path: Path, host: dict[str, Any] | None, provider: str) -> None:
    found = set(versions(plan(tmp_path, mpi=host))) & {"mpich", "intel_mpi", "openmpi"}
    assert found == {provider}


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("4.0.5", ["4.0.3", "4.0.5"]),
        ("4.1.2", ["4.0.3", "4.0.5", "4.0.7", "4.1.0", "4.1.1", "4.1.2"]),
        ("5.0.5", ["5.0.3", "5.0.5"]),
        ("5.0.10", ["5.0.3", "5.0.5", "5.0.6", "5.0.7", "5.0.8", "5.0.9", "5.0.10"]),
        ("5.0", ["5.0.3", "5.0.5", "5.0.6", "5.0.7", "5.0.8", "5.0.9", "5.0.10", "5.0.11"]),
        (
            "4",
            [
                "4.0.3",
                "4.0.5",
                "4.0.7",
                "4.1.0",
                "4.1.1",
                "4.1.2",
                "4.1.3",
                "4.1.4",
                "4.1.5",
                "4.1.6",
                "4.1.7",
                "4.1.8",
            ],
        ),
    ],
)
def test_open_mpi_is_of_the_hosts_major_and_not_newer(host: str, allowed: list[str]) -> None:
    (wanted,) = CATALOG.block("openmpi").site_ranges(facts(mpi=openmpi_host(host)))
    assert wanted.path == "mpi.version"
    assert [version for version in CATALOG.releases("openmpi") if in_range(version, wanted.versions)] == allowed


def test_open_mpi_5_beside_a_host_with_4_is_a_conflict_that_names_the_host(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as raised:
        plan(tmp_path, "openmpi.version=5.0.7", mpi=OPEN_MPI)
    told = str(raised.value)
    assert "the host's Open MPI 4.1.5" in told
    assert "5.0.7" in told


@pytest.mark.parametrize(
    ("flavour", "version", "newest_allowed"),
    [("cray-mpich", "8.1.29", "3.4.3"), ("cray-mpich", "9.0.1", "4.3.2"), ("mpich", "4.2.3", "4.2.3")],
)
def test_mpich_is_what_the_hosts_takes_the_place_of(
    tmp_path: Path, flavour: str, version: str, newest_allowed: str
) -> None:
    host = {"flavour": flavour, "version": version, "abi": "mpich", "libraries": ["/opt/host/lib"]}
    shown = [{"source": "/opt/host", "target": "/opt/host"}]
    assert versions(plan(tmp_path, mpi={**host, "binds": shown}))["mpich"] == newest_allowed


def test_a_host_that_only_starts_ranks_bounds_no_mpich(tmp_path: Path) -> None:
    host = {"flavour": "cray-mpich", "version": "8.1.29", "abi": "mpich", "pmi": ["pmi2"]}
    assert versions(plan(tmp_path, mpi=host))["mpich"] == "4.3.2"


def test_a_host_that_only_starts_the_ranks_bounds_open_mpi_too_and_says_so() -> None:
    (wanted,) = CATALOG.block("openmpi").site_ranges(facts(mpi=openmpi_host("4.1.5", ())))
    assert wanted.versions == ">=4,<=4.1.5"
    assert "which starts the ranks" in wanted.reason


def test_a_host_without_open_mpi_bounds_nothing() -> None:
    block = CATALOG.block("openmpi")
    assert block.site_ranges(facts()) == []
    assert block.site_ranges(facts(mpi=intel_host("2021.11"))) == []
    assert block.preference(facts(mpi=intel_host("2021.11"))) is None


@pytest.mark.parametrize(
    ("fabric", "below"),
    [
        ("none", set()),
        ("ethernet", set()),
        ("infiniband", {"ucx"}),
        ("omni-path", {"libfabric", "psm2"}),
        ("slingshot", {"libfabric"}),
        ("efa", {"libfabric"}),
    ],
)
def test_the_fabric_decides_what_is_below_open_mpi(tmp_path: Path, fabric: str, below: set[str]) -> None:
    found = versions(plan(tmp_path, mpi=OPEN_MPI, fabric=fabric))
    assert set(found) & {"ucx", "libfabric", "psm2", "pmix"} == below
    assert found["openmpi"] == "4.1.5"


def test_a_pmix_of_its_own_is_one_that_this_open_mpi_takes(tmp_path: Path) -> None:
    found = versions(plan(tmp_path, "openmpi.pmix=separate", mpi=OPEN_MPI))
    # Before 4.1.6 Open MPI cannot do with 4.2.3 and later.
    assert found["pmix"] == "4.2.2"
    assert {"hwloc", "libevent"} <= set(found)
    newer = versions(plan(tmp_path, "openmpi.pmix=separate", mpi={**OPEN_MPI, "version": "5.0.8"}))
    assert newer["pmix"].startswith("5.")


# Open MPI


def test_open_mpi_is_built_with_what_it_brings() -> None:
    block, ctx = context("openmpi", "4.1.4", others=some("gnu"))
    steps = text(block.build(ctx))
    for name in ("pmix", "libevent", "hwloc"):
        assert f"--with-{name}=internal" in steps
    # Whatever the builder has: the final stage may not have it.
    for name in ("ucx", "ofi", "verbs", "psm2", "cuda"):
        assert f"--without-{name}" in steps
    assert "prrte" not in steps
    assert "--with-prrte=internal" in text(block.build(context("openmpi", "5.0.7", others=some("gnu"))[1]))


def test_open_mpi_over_the_blocks_below_it() -> None:
    block, ctx = context("openmpi", "5.0.7", facts(fabric="infiniband"), others=some("gnu", "ucx"))
    assert "--with-ucx=/opt/ucx --without-ofi" in text(block.build(ctx))
    assert any(test.expect == "MCA pml: ucx" for test in block.test(ctx))
    block, ctx = context("openmpi", "5.0.7", facts(fabric="slingshot"), others=some("gnu", "libfabric"))
    assert "--without-ucx --with-ofi=/opt/libfabric" in text(block.build(ctx))
    assert any(test.expect == "MCA mtl: ofi" for test in block.test(ctx))
    own = some("gnu", "pmix", "hwloc", "libevent")
    block, ctx = context("openmpi", "5.0.7", others=own, pmix="separate")
    assert "--with-pmix=/opt/pmix --with-libevent=/opt/libevent --with-hwloc=/opt/hwloc" in text(block.build(ctx))


def test_cuda_is_asked_for_by_name() -> None:
    block, ctx = context("openmpi", "4.1.4", others=some("gnu", "cuda"), cuda=True)
    assert "--with-cuda=/opt/cuda " in text(block.build(ctx))
    block, ctx = context("openmpi", "5.0.7", others=some("gnu", "cuda"), cuda=True)
    assert "--with-cuda=/opt/cuda --with-cuda-libdir=/opt/cuda/lib64/stubs " in text(block.build(ctx))
    block, ctx = context("ucx", "1.18.1", others=some("gnu", "cuda"), cuda=True)
    assert "--with-cuda=/opt/cuda " in text(block.build(ctx))


def test_rocm_is_asked_for_by_name_where_the_release_compiles_with_it() -> None:
    block, ctx = context("ucx", "1.18.1", others=some("gnu", "rocm"), rocm=True)
    assert "--with-rocm=/opt/rocm " in text(block.build(ctx)) and block.capabilities(ctx).gpu_memory == "amd"
    assert any("libuct_rocm.so.0" in test.command for test in block.test(ctx))
    block, ctx = context("openmpi", "5.0.10", others=some("gnu", "rocm"), rocm=True)
    assert "--with-rocm=/opt/rocm " in text(block.build(ctx))
    block, ctx = context("openmpi", "4.1.8", others=some("gnu"))
    assert "rocm" not in text(block.build(ctx))
    block, ctx = context("openmpi", "5.0.7", others=some("gnu", "rocm"), rocm=True)
    with pytest.raises(ConflictError, match=r"openmpi 5\.0\.7 does not compile with ROCm"):
        text(block.build(ctx))


def test_the_launcher_of_open_mpi_runs_as_root_and_finds_its_own_files() -> None:
    block, ctx = context("openmpi", "5.0.7", others=some("gnu"))
    environment = block.environment(ctx)
    assert environment.both["OMPI_ALLOW_RUN_AS_ROOT"] == environment.both["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert environment.paths == {"PATH": ["/opt/openmpi/bin"], "LD_LIBRARY_PATH": ["/opt/openmpi/lib"]}
    # It would send a host's library to the image's plugins.
    assert "OPAL_PREFIX" not in environment.both


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("4.1.4", {"openmpi": ["plm = isolated", "ras = ^slurm", "btl_vader_single_copy_mechanism = none"]}),
        ("5.0.7", {"prte": ["plm = ^slurm", "ras = ^slurm"]}),
    ],
)
def test_the_launcher_of_the_image_keeps_to_its_node(version: str, told: dict[str, list[str]]) -> None:
    """Within a batch job it would otherwise ask Slurm for slots and for its srun, which is not in the image."""
    block, ctx = context("openmpi", version, others=some("gnu"))
    steps = text(block.build(ctx))
    for program, lines in told.items():
        for line in lines:
            assert f"/opt/hpcgen/build/{program}-mca-params.conf: {line}" in steps
    (program,) = told
    copy = f"cp /opt/hpcgen/build/{program}-mca-params.conf /opt/openmpi/etc/{program}-mca-params.conf"
    assert copy in steps[steps.index("make -C /opt/hpcgen/build/openmpi install") :]
    assert steps.count("mca-params.conf") == steps.count(f"{program}-mca-params.conf")


def test_ranks_of_the_image_start_in_the_self_test_only_where_no_host_mpi_takes_its_place() -> None:
    for host, wanted in ((None, 1), (openmpi_host("4.1.5"), 0)):
        block, ctx = context("openmpi", "4.1.5", facts(mpi=host), others=some("gnu"))
        found = [test.command for test in block.test(ctx) if "mpiexec -n 2" in test.command]
        assert len(found) == wanted
        # hpcgen test starts the self-test as a rank, and the mpiexec of 4.1.4 "does not support recursive calls".
        assert all(command.startswith("env -i ") for command in found)


# UCX and PMIx


def test_ucx_drives_the_card_where_there_is_infiniband() -> None:
    block, ctx = context("ucx", "1.18.1", facts(fabric="infiniband"))
    assert "--with-verbs --with-rdmacm" in text(block.build(ctx))
    assert "ibverbs-providers" in block.packages(ctx).run["apt"]
    assert any(test.device == "fabric" for test in block.test(ctx))
    block, ctx = context("ucx", "1.18.1")
    assert "--without-verbs --without-rdmacm" in text(block.build(ctx))
    assert not block.packages(ctx).run


def test_pmix_is_built_over_the_blocks_that_open_mpi_has_too() -> None:
    block, ctx = context("pmix", "5.0.10", others=some("gnu", "libevent", "hwloc"))
    assert "--with-libevent=/opt/libevent --with-hwloc=/opt/hwloc" in text(block.build(ctx))
    assert block.packages(ctx).run["apt"] == ["zlib1g"]


@pytest.mark.parametrize(("version", "wanted"), [("4.2.2", True), ("4.2.9", True), ("5.0.5", False), ("5.0.10", False)])
def test_a_pmix_whose_configure_insists_on_python_has_one_while_building(version: str, wanted: bool) -> None:
    """Without: "configure: error: no suitable Python interpreter found", 4.2.2 on Debian 12."""
    block, ctx = context("pmix", version, others=some("gnu", "libevent", "hwloc"))
    packages = block.packages(ctx)
    assert ("python3-minimal" in packages.build["apt"]) == ("python3" in packages.build["dnf"]) == wanted
    assert "python3-minimal" not in packages.run["apt"]


@pytest.mark.parametrize(
    ("version", "pmix", "wanted"),
    [
        ("4.1.4", "bundled", False),
        ("5.0.3", "bundled", True),
        ("5.0.5", "bundled", True),
        ("5.0.6", "bundled", False),
        ("5.0.5", "separate", False),
    ],
)
def test_an_open_mpi_that_brings_such_a_pmix_has_python_too(version: str, pmix: str, wanted: bool) -> None:
    block, ctx = context("openmpi", version, others=some("gnu", "pmix", "libevent", "hwloc"), pmix=pmix)
    build = block.packages(ctx).build
    assert ("python3-minimal" in build["apt"]) == ("python3" in build["dnf"]) == wanted


def test_pmix_is_asked_for_its_version_in_a_way_that_it_answers() -> None:
    block, ctx = context("pmix", "5.0.5", others=some("gnu", "libevent", "hwloc"))
    (test,) = block.test(ctx)
    # What 5.0.5 printed; with --version it prints nothing, and so do 4.2.2 and 5.0.10.
    assert test.command == "pmix_info"
    assert test.expect in "                    PMIX: 5.0.5\n      PMIX repo revision: v5.0.5\n"


# promises


def promised(name: str, version: str, *below: str, **of_site: Any) -> Capabilities:
    block, ctx = context(
        name, version, facts(**of_site), others={**some("gnu"), **{each: BELOW[each] for each in below}}
    )
    return block.capabilities(ctx)


def test_what_an_mpi_promises_a_host() -> None:
    for version in ("4.1.4", "5.0.7"):
        open_mpi = promised("openmpi", version)
        assert (open_mpi.mpi_abi, open_mpi.mpi_library) == ("openmpi", "libmpi.so.40")
        # Built without Slurm's headers, 4.x has no PMI-2 either.
        assert open_mpi.pmi == ("pmix",)
    for name, version in (("mpich", "4.2.3"), ("intel_mpi", "2021.17.2"), ("intel_mpi", "2019.6.166")):
        other = promised(name, version)
        assert (other.mpi_abi, other.mpi_library) == ("mpich", "libmpi.so.12")
        assert "pmi2" in other.pmi
        assert "pmix" not in other.pmi


def test_a_provider_is_promised_if_its_library_is_in_the_image() -> None:
    assert "ucx" in promised("ucx", "1.18.1").providers
    assert "verbs" in promised("libfabric", "2.1.0", fabric="infiniband").providers
    assert not {"verbs", "psm2"} & set(promised("libfabric", "2.1.0").providers)
    # These are among Intel's files in any case, and load only beside UCX and rdma-core.
    assert not {"mlx", "verbs"} & set(promised("intel_mpi", "2021.17.2").providers)
    assert promised("intel_mpi", "2021.17.2", "ucx", fabric="infiniband").providers[:2] == ("mlx", "verbs")
    assert "mlx" not in promised("intel_mpi", "2019.5.281", "ucx", fabric="infiniband").providers
    psm2 = {name: chosen("psm2", "11.2.185") for name in ("psm2", "fabric")}
    for name, version in (("intel_mpi", "2021.17.2"), ("libfabric", "2.1.0")):
        block, ctx = context(name, version, facts(fabric="omni-path"), others=psm2)
        assert block.capabilities(ctx).providers[0] == "psm2"


@pytest.mark.parametrize(
    ("version", "name"),
    [("2021.17.2", "intel-simplified"), ("2021.4.0", "intel-simplified"), ("2019.6.166", "intel-eula")],
)
def test_intel_mpi_names_the_licence_that_its_installation_accepts(version: str, name: str) -> None:
    (licence,) = promised("intel_mpi", version).licences
    assert licence.name == name
    block, ctx = context("intel_mpi", version)
    assert licence.title in " ".join(block.details(ctx))


def test_intel_mpi_has_ucx_on_infiniband_and_is_tested_for_it(tmp_path: Path) -> None:
    found = plan(tmp_path, mpi={"flavour": "intel", "version": "2021.11.0", "abi": "mpich"}, fabric="infiniband")
    assert "ucx" in versions(found)
    for version, folder in (
        ("2021.4.0", "lib/libfabric/prov"),
        ("2021.17.2", "lib"),
        ("2019.6.166", "intel64/libfabric/lib/prov"),
    ):
        block, ctx = context("intel_mpi", version, facts(fabric="infiniband"), others=some("ucx"))
        assert any(f"/opt/intel_mpi/{folder}/libmlx-fi.so" in test.command for test in block.test(ctx))


# recipes


def kit(folder: Path, format: str, engine: str, mpi: dict[str, Any] | None) -> Kit:
    settings = ["mpi.provider=openmpi", "openmpi.pmix=separate"]
    planned = plan(folder, *settings, format=format, fabric="infiniband", mpi=mpi, engine=engine)
    return make_kit(planned, Catalog([folder]))


@pytest.mark.parametrize("mpi", [OPEN_MPI, None], ids=["beside a host's", "alone"])
@pytest.mark.parametrize(
    ("format", "engine"), [("docker", "podman"), ("singularity", "apptainer"), ("charliecloud", "charliecloud")]
)
def test_recipes_of_open_mpi_are_clean(tmp_path: Path, format: str, engine: str, mpi: dict[str, Any] | None) -> None:
    files = kit(tmp_path, format, engine, mpi).files
    assert ("check-ranks" in files["selftest.sh"].text) == (mpi is None)
    recipe = "\n".join(file.text for file in files.values())
    for name in ("ucx", "pmix", "hwloc", "libevent", "openmpi"):
        assert len(re.findall(rf"\./configure --prefix=/opt/{name}\b", recipe)) == 1, name
    for name, file in files.items():
        if name == "Dockerfile":
            words: list[Any] = [TOOLS / "hadolint", "--config", ROOT / ".hadolint.yaml", "-"]
        elif name.endswith(".sh") or name.endswith(".slurm"):
            words = [TOOLS / "shellcheck", "--norc", "-"]
        else:
            continue
        done = subprocess.run(words, input=file.text, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
