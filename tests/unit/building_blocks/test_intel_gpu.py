"""Intel's GPUs: the runtime in the image, who computes on them, and what a job says of their tiles."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from tests.unit.building_blocks.test_pytorch import program
from tests.unit.launch.test_binding import script, with_gpus

PALS = {"PALS_RANKID": "13", "PALS_SIZE": "24", "PALS_LOCAL_RANKID": "1", "PALS_LOCAL_SIZE": "12", "MASTER_ADDR": "a"}


def versions(plan: Plan) -> dict[str, str]:
    return {block.name: block.version for block in plan.blocks}


def job(plan: Plan) -> str:
    return next(file.text for name, file in make_kit(plan, Catalog()).files.items() if name.startswith("job."))


@pytest.mark.parametrize(("site", "gpus"), [("aurora", 6), ("supermuc-phase2", 4)])
def test_pytorch_computes_on_intels_gpus_by_the_hashed_wheel(site: str, gpus: int) -> None:
    plan = hpcgen.plan(site, "pytorch-ddp")
    assert versions(plan)["pytorch"] == "2.12.1" and "intel_gpu" in versions(plan)
    assert plan.job.gpus_per_node == gpus and plan.gpu_vendor == "intel"
    text = "".join(file.text for file in make_kit(plan, Catalog()).files.values())
    assert "torch-2.12.1%2Bxpu-cp312" in text and "oneccl==2021.17.2" in text and "nvidia-nccl" not in text


def test_a_release_without_a_hash_says_so_and_what_to_take() -> None:
    with pytest.raises(ConflictError) as found:
        hpcgen.plan("aurora", "pytorch", settings=["pytorch.version=2.13.0"])
    assert "no two public files" in str(found.value) and "pytorch.version=2.12.1" in str(found.value)


def test_a_job_of_oneccl_has_twelve_devices_in_sight_and_the_cpus_of_its_tile() -> None:
    text = job(hpcgen.plan("aurora", "pytorch-ddp", nodes=2))
    for line in ("ZE_FLAT_DEVICE_HIERARCHY=FLAT", "CCL_KVS_IFACE=hsn0", "FI_PROVIDER=tcp"):
        assert f"export {line}\n" in text
    assert "NCCL_SOCKET_IFNAME" not in text and "ZE_AFFINITY_MASK" not in text
    assert "0) cpus=1-8 ;;" in text and "11) cpus=93-100 ;;" in text and "--ppn 12" in text


def test_the_hosts_intel_mpi_knows_gpu_memory_for_programs_that_use_gpus_alone() -> None:
    """Ranks without a GPU, or without Level Zero inside, end in MPI_Init where the variable is set."""
    for stack, gpus, known in (("pytorch-ddp", None, True), ("pytorch-ddp", 0, False), ("mpi-hello", None, False)):
        text = job(hpcgen.plan("supermuc-phase2", stack, gpus_per_node=gpus))
        assert ("export I_MPI_OFFLOAD=1\n" in text) is known, (stack, gpus)
        assert "export PSM3_RDMA=1\n" in text


def test_ranks_that_choose_nothing_see_their_tiles() -> None:
    site = with_gpus(count=2, vendor="intel")
    partition = site.partitions[site.default_partition]
    assert partition.gpu is not None
    gpu = msgspec.structs.replace(partition.gpu, tiles=2, cpus=["0-3", "4-7"])
    partition = msgspec.structs.replace(partition, gpu=gpu)
    site = msgspec.structs.replace(site, partitions={site.default_partition: partition})
    ranks: dict[str, Any] = {"ranks_per_node": 4, "threads_per_rank": 2, "gpus_per_node": 2}
    text = script(site, **ranks)
    for rank, cpus in enumerate(("0-1", "2-3", "4-5", "6-7")):
        assert f"{rank}) nth={rank + 1} cpus={cpus} ;;" in text
    assert "GPUs of a rank: each rank sees its own, with tiles as devices, by ZE_AFFINITY_MASK" in text


def test_ranks_tell_oneccl_their_place_on_the_node() -> None:
    variables = program("torch_ranks").variables
    assert "CCL_LOCAL_RANK" not in variables(PALS)
    found = variables({**PALS, "CCL_PROCESS_LAUNCHER": "none"})
    assert (found["CCL_LOCAL_RANK"], found["CCL_LOCAL_SIZE"]) == ("1", "12")


def test_openvino_computes_on_them_where_that_is_asked_for() -> None:
    assert "intel_gpu" not in versions(hpcgen.plan("aurora", "openvino"))
    plan = hpcgen.plan("aurora", "openvino-gpu")
    assert "intel_gpu" in versions(plan) and plan.job.gpus_per_node == 1
    files = make_kit(plan, Catalog()).files
    assert any("libze-intel-gpu1" in file.text for file in files.values())
    assert "[ ! -w /dev/dri/renderD128 ]" in files["preflight.sh"].text
