"""What a host's MPI takes besides for GPUs: in jobs whose image uses them, and in no other."""

from __future__ import annotations

import json
import shlex

import msgspec
import pytest

from hpcgen.backends.engines import engine_for
from hpcgen.core.model.host_mpi import Bind, GpuMpi
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.launch.script import job_script, preflight_script
from hpcgen.launch.start import host_mpi
from hpcgen.planning.contract.case import ContractCase
from hpcgen.planning.contract.engine import binds
from hpcgen.recipe.bind_targets import bind_targets
from hpcgen.running.host_side import asked_of_host
from tests.conftest import Command
from tests.unit.launch.test_launch import container, make_plan, site, variables

replace = msgspec.structs.replace
GTL = "/opt/cray/pe/mpich/8.1.31/gtl/lib"
GPU = GpuMpi(
    environment={"MPICH_GPU_SUPPORT_ENABLED": "1", "LOCAL": "a 'b' $c"},
    preload=[f"{GTL}/libmpi_gtl_hsa.so.0"],
    libraries=[GTL],
    binds=[Bind(source="/usr/share/libdrm", target="/usr/share/libdrm")],
    modules=["rocm/6.2.4"],
)
ROCM = PlannedBlock(name="rocm", version="6.2.4", host={"driver": ">=6.1"}, gpu_runtime="amd")
WHEELS = PlannedBlock(name="pytorch", version="2.9.1", host={"driver": ">=6.1"})


def of(*, software: bool, gpu: GpuMpi = GPU, gpus_per_node: int | None = None) -> Plan:
    profile = site("lumi-g")
    assert profile.mpi is not None
    profile = replace(profile, mpi=replace(profile.mpi, gpu={"amd": gpu}))
    plan = make_plan(profile, mpi=True, mpi_block="mpich", account="p", gpus_per_node=gpus_per_node)
    return replace(plan, blocks=[*plan.blocks, ROCM]) if software else plan


def test_an_image_with_rocm_has_it_and_mpi_hello_has_not() -> None:
    text = job_script(of(software=True), {"LD_LIBRARY_PATH": "/opt/mpich/lib", "LD_PRELOAD": "/opt/own.so"})[1]
    assert "export MPICH_GPU_SUPPORT_ENABLED=1\n" in text
    assert f"export LOCAL={shlex.quote(GPU.environment['LOCAL'])}\n" in text
    inside = variables(container(text))
    assert inside["LD_PRELOAD"] == f"{GTL}/libmpi_gtl_hsa.so.0:/opt/own.so"
    assert inside["LD_LIBRARY_PATH"].startswith(f"{GTL}:/opt/cray/pe/mpich/")
    assert "/usr/share/libdrm:/usr/share/libdrm" in container(text)
    assert "module load rocm/6.2.4\n" in text
    without = job_script(of(software=False), {"LD_LIBRARY_PATH": "/opt/mpich/lib"})[1]
    for word in ("MPICH_GPU_SUPPORT_ENABLED", "gtl", "libdrm:/usr/share/libdrm", "module load"):
        assert word not in without


def test_a_job_without_gpus_and_a_part_of_another_vendor_have_nothing_of_it() -> None:
    assert "GPU_SUPPORT" not in job_script(of(software=True, gpus_per_node=0), {})[1]
    plan = of(software=True)
    assert plan.site.mpi is not None
    other = replace(plan.site, mpi=replace(plan.site.mpi, gpu={"nvidia": GPU}))
    assert "GPU_SUPPORT" not in job_script(replace(plan, site=other), {})[1]


def test_wheels_that_keep_their_run_time_for_themselves_have_nothing_of_it() -> None:
    """Cray's library, loaded first, would not find libamdhip64, and MPI would end as it starts."""
    plan = of(software=False)
    assert "GPU_SUPPORT" not in job_script(replace(plan, blocks=[*plan.blocks, WHEELS]), {})[1]


def test_the_images_run_time_is_of_the_releases_that_the_hosts_library_is_linked_with(hpcgen: Command) -> None:
    done = hpcgen("plan", "--site", "frontier", "--stack", "mpi-hello", "--add", "rocm", "--json")
    (rocm,) = [block for block in json.loads(done.stdout)["blocks"] if block["name"] == "rocm"]
    assert rocm["gpu_runtime"] == "amd"
    assert rocm["version"].startswith("6.")


def test_the_image_has_the_mount_points_whatever_the_job_asks_for() -> None:
    assert "/usr/share/libdrm" in bind_targets(of(software=True, gpus_per_node=0))
    assert "/usr/share/libdrm" not in bind_targets(of(software=False))


def test_the_preflight_looks_for_the_library_where_the_host_has_it() -> None:
    text = preflight_script(of(software=True), {})
    assert f"{GTL}/libmpi_gtl_hsa.so.0" in text
    assert "correct mpi.gpu.amd.preload.0 of the profile of lumi-g" in text
    assert "gtl" not in preflight_script(of(software=False), {})


def test_a_library_that_no_bind_shows_breaks_the_contract() -> None:
    hidden = replace(GPU, preload=["/usr/local/gtl/libmpi_gtl_hsa.so"], libraries=[])
    for gpu, paths in ((GPU, []), (hidden, ["mpi.gpu.amd.preload.0"])):
        plan = of(software=True, gpu=gpu)
        engine = engine_for(plan.engine, None)
        checks = binds(ContractCase(plan=plan, engine=engine, host=host_mpi(plan, engine)))
        assert [check.path for check in checks if check.outcome == "broken"] == paths


@pytest.mark.parametrize("word", ["MPICH_GPU_SUPPORT_ENABLED=1", "libmpi_gtl_hsa", "/usr/share/libdrm", "rocm/6.2.4"])
def test_a_record_tells_what_of_it_would_reach_the_host(word: str) -> None:
    assert word in asked_of_host(of(software=True))
    assert word not in asked_of_host(of(software=False))
