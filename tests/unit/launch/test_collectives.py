"""What jobs over several nodes tell NCCL, RCCL and Gloo, and what the preflight looks for on their behalf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import hpcgen
from hpcgen.backends.hardware.fabrics import NCCL_VERBS
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.nodes import Fabric, Gpu
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from tests.unit.launch.test_preflight import LIBRARY, Here, failed, nodes

replace = msgspec.structs.replace


def job(site: str, stack: str, **asked: Any) -> str:
    return make_kit(hpcgen.plan(site, stack, **asked), Catalog()).files["job.slurm"].text


def test_podman_hpc_brings_the_plugin_and_its_folders_come_first() -> None:
    text = job("perlmutter", "tf-horovod", nodes=2)
    assert "    --gpu\n    --nccl\n" in text and "export NCCL_NET='AWS Libfabric'" in text
    plugin = "/opt/udiImage/modules/nccl-plugin"
    assert f"-e LD_LIBRARY_PATH={plugin}/lib:{plugin}/deps/lib:/opt/udiImage/modules/mpich:" in text
    assert "-e NCCL_NET\n" in text and "export NCCL_SOCKET_IFNAME=hsn0" in text


def test_nothing_of_that_on_one_node_where_it_would_stop_nccl_for_nothing() -> None:
    text = job("perlmutter", "tf-horovod", nodes=1)
    assert "NCCL" not in text and "--nccl" not in text and "nccl-plugin" not in text


def test_the_container_engines_hook_is_enabled_in_its_variant() -> None:
    text = job("alps", "pytorch-horovod", nodes=2)
    assert 'com.hooks.aws_ofi_nccl.enabled = "true"' in text and 'com.hooks.aws_ofi_nccl.variant = "cuda-dl"' in text
    assert "com.hooks.aws_ofi_nccl" not in job("alps", "pytorch-horovod", nodes=1)


def test_a_plugin_in_the_image_was_asked_for_and_is_taken_before_the_engines() -> None:
    text = job("perlmutter", "tf-horovod", nodes=2, add=["aws_ofi_nccl"], allow_unsupported=True)
    assert "--nccl" not in text and "nccl-plugin" not in text and "export NCCL_NET='AWS Libfabric'" in text


def test_what_site_or_stack_say_is_kept() -> None:
    plan = hpcgen.plan("perlmutter", "tf-horovod", nodes=2)
    run = replace(plan.stack.run, environment={"NCCL_NET": "Socket"})
    text = make_kit(replace(plan, stack=replace(plan.stack, run=run)), Catalog()).files["job.slurm"].text
    assert "export NCCL_NET=Socket" in text and "AWS Libfabric" not in text


def test_gloo_is_told_the_interface_on_several_nodes() -> None:
    assert "export GLOO_SOCKET_IFNAME=hsn0" in job("lumi-c", "pytorch-ddp", nodes=2)
    assert "GLOO_SOCKET_IFNAME" not in job("lumi-c", "pytorch-ddp", nodes=1)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    made = Here(tmp_path)
    nodes(made, ["node1", "node2"])
    made.ranks(f"rank $RANK of 4 on node\nrank $RANK maps {LIBRARY}")
    return made


def with_nccl(here: Here, **fabric: Any) -> Plan:
    """A job of two nodes whose image has NCCL and what that drives InfiniBand by."""
    main = replace(here.site.partitions["main"], gpu=Gpu(vendor="nvidia", model="A100"))
    here.site = replace(here.site, partitions={"main": main}, fabric=Fabric(kind="infiniband", **fabric))
    plan = here.plan(nodes=2)
    nccl = replace(plan.blocks[-1], name="nccl", gpu_collectives="NCCL", gpu_networks=[NCCL_VERBS])
    return replace(plan, blocks=[*plan.blocks, nccl], job=replace(plan.job, gpus_per_node=1))


def test_the_preflight_says_what_carries_nccl_and_that_it_is_asserted(here: Here) -> None:
    (here.folder / "infiniband").touch()
    here.replaced["/dev/infiniband"] = str(here.folder / "infiniband")
    status, said, started = here.run(with_nccl(here, interface="lo"))
    assert (status, started) == (0, True), said
    assert "preflight: collectives: NCCL over IB, libibverbs of the image; if that fails, NCCL stops" in said


def test_a_node_without_the_device_or_the_interface_is_named(here: Here) -> None:
    here.replaced["/dev/infiniband"] = str(here.folder / "gone")
    said = failed(here, "GPU network on node1, node2: expected", plan=with_nccl(here, interface="nope0"))
    assert (
        "interface on node1, node2: expected /sys/class/net/nope0; seen: nothing there; correct fabric.interface"
        in said
    )
    assert "preflight: collectives" not in said
