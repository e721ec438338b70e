"""A site's own modules that show its MPI in containers, preferred to lists of files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines import engine_for
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.host_mpi import GpuMpi
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.launch.parts import mpi_folders
from hpcgen.launch.script import job_script
from hpcgen.launch.start import host_mpi
from hpcgen.planning.contract.case import ContractCase
from hpcgen.planning.contract.engine import binds
from hpcgen.planning.contract.fabric import provider
from tests.unit.launch.test_launch import allow_every_engine, make_plan, site

replace = msgspec.structs.replace
IMAGE = {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/opt/mpich/lib", "LD_PRELOAD": "/opt/own.so"}


def of(engine: EngineName = "apptainer", *, software: bool = False) -> Plan:
    profile = allow_every_engine(site("lumi-g"))
    assert profile.mpi is not None
    gpu = GpuMpi(environment={"MPICH_GPU_SUPPORT_ENABLED": "1"}, bind_modules=["apptainer-enable-gpu"])
    modules = ["olcf-container-tools", "apptainer-enable-mpi"]
    mpi = replace(profile.mpi, root="/opt/cray", modules=["cray-mpich-abi"], bind_modules=modules, gpu={"amd": gpu})
    plan = make_plan(replace(profile, mpi=mpi), engine, mpi=True, mpi_block="mpich", account="p")
    return (
        replace(plan, blocks=[*plan.blocks, PlannedBlock(name="rocm", version="6.2.4", gpu_runtime="amd")])
        if software
        else plan
    )


def loaded(text: str) -> list[str]:
    return [line.split()[-1] for line in text.splitlines() if line.startswith("module load")]


def test_they_are_loaded_in_order_and_take_the_place_of_the_lists() -> None:
    text = job_script(of(), IMAGE)[1]
    assert loaded(text) == ["cray-mpich-abi", "olcf-container-tools", "apptainer-enable-mpi"]
    assert "/usr/lib64/libcxi.so.1" not in text and "lib-abi-mpich" not in text
    with_gpus = job_script(of(software=True), IMAGE)[1]
    assert loaded(with_gpus)[-1] == "apptainer-enable-gpu"
    assert "MPICH_GPU_SUPPORT_ENABLED=1" in with_gpus


def test_an_engine_that_does_not_read_what_they_set_has_the_lists() -> None:
    text = job_script(of("charliecloud"), IMAGE)[1]
    assert loaded(text) == ["cray-mpich-abi"]
    assert "/usr/lib64/libcxi.so.1:/usr/lib64/libcxi.so.1" in text and "lib-abi-mpich" in text


@pytest.mark.parametrize(
    ("given", "path", "preload"),
    [
        (
            {"APPTAINERENV_LD_LIBRARY_PATH": "/opt/cray/lib:/b c", "APPTAINERENV_LD_PRELOAD": "/gtl.so"},
            "/opt/cray/lib:/b c:",
            "/gtl.so:",
        ),
        ({"SINGULARITYENV_LD_LIBRARY_PATH": "/opt/cray/lib"}, "/opt/cray/lib:", ""),
        ({}, "", ""),
    ],
)
def test_what_they_set_comes_before_what_the_image_has(given: dict[str, str], path: str, preload: str) -> None:
    text = job_script(of(), IMAGE)[1]
    array = text[text.index("container=(") : text.index("\n)\n", text.index("container=(")) + 3]
    before = "set -euo pipefail\nown_gpu() { :; }\nfolder=/f image=/i mpi=/opt/cray file_systems=()\n"
    script = f'{before}{array}printf "%s\\n" "${{container[@]}}"\n'
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **given}
    )
    words = done.stdout.splitlines()
    assert f"LD_LIBRARY_PATH={path}/opt/mpich/lib:/.singularity.d/libs" in words
    assert f"LD_PRELOAD={preload}/opt/own.so" in words
    assert "LD_PRELOAD" not in words


def test_the_contract_and_the_ranks_go_by_the_root() -> None:
    plan = of()
    engine = engine_for(plan.engine, None)
    case = ContractCase(plan=plan, engine=engine, host=host_mpi(plan, engine))
    assert [check.outcome for check in binds(case)] == ["holds"]
    assert provider(case).outcome == "holds"
    assert mpi_folders(plan) == ("the host's (cray-mpich)", ["/opt/cray"])


def test_without_a_root_nobody_could_tell_whose_mpi_a_rank_has(tmp_path: Path) -> None:
    mpi = "mpi: {flavour: mpich, version: 4.1, abi: mpich, launcher: srun, bind_modules: [show-mpi]}"
    (tmp_path / "x.yaml").write_text(f"extends: slurm-cpu\nname: x\ntitle: x\n{mpi}\n")
    with pytest.raises(InputError, match=r"mpi\.root"):
        Catalog().site(str(tmp_path / "x.yaml"))
