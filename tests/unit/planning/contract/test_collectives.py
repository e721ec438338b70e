"""Collectives over several nodes: what carries them, who brings it, and what keeps them from sockets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, UnknownNameError
from hpcgen.planning.contract.case import Check
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.recipe.assemble import assemble
from tests.conftest import ROOT, Command

PLUGIN = {"add": ["aws_ofi_nccl"], "settings": {"python.obtain": "standalone"}}


def check(plan: hpcgen.Plan, catalog: Catalog | None = None) -> Check:
    (found,) = checks_of(case_of(plan, catalog or Catalog()), only=("collectives",))
    return found


@pytest.mark.parametrize(
    ("site", "stack", "nodes", "outcome", "says"),
    [
        ("alps", "pytorch-horovod", 4, "holds", "NCCL over AWS Libfabric, the plugin of container-engine"),
        ("alps", "pytorch-horovod", 1, "skipped", "one node"),
        ("perlmutter", "tf-horovod", 2, "holds", "the plugin of podman-hpc"),
        ("juwels-booster", "tf-horovod", 2, "holds", "NCCL over IB, libibverbs of the image"),
        ("lumi-g", "pytorch-ddp", 2, "holds", "RCCL over AWS Libfabric, the plugin of the image"),
        ("lumi-g", "vllm-ray", 2, "doubtful", "RCCL will send data between nodes"),
        ("supermuc", "pytorch-ddp", 2, "unknown", "Gloo sends by TCP"),
        ("lumi-c", "pytorch-ddp", 2, "holds", "Gloo sends by TCP over hsn0"),
        ("supermuc", "mpi-hello", 2, "skipped", "MPI carries them"),
    ],
)
def test_each_site_has_its_way(site: str, stack: str, nodes: int, outcome: str, says: str) -> None:
    found = check(hpcgen.plan(site, stack, nodes=nodes, allow_unsupported=True))
    assert found.outcome == outcome
    assert says in found.reason


def test_sockets_are_a_finding_where_the_plugin_does_not_fit() -> None:
    """An image that brings its base cannot start from that of ROCm too."""
    plan = hpcgen.plan("lumi-g", "vllm-ray", nodes=2)
    (finding,) = [each for each in plan.findings if each.name == "collectives"]
    assert finding.severity == "warning" and "--add aws_ofi_nccl says what is against it" in finding.remedy
    assert plan.block("aws_ofi_nccl") is None


@pytest.mark.parametrize(("site", "plugin"), [("lumi-g", True), ("hunter", True), ("alps", False), ("leonardo", False)])
def test_the_plugin_is_there_unasked_where_nothing_else_brings_it(site: str, plugin: bool) -> None:
    plan = hpcgen.plan(site, "pytorch-ddp")
    assert (plan.block("aws_ofi_nccl") is not None) == plugin
    assert "--add" not in plan.command


def test_an_engine_without_a_plugin_of_its_own_gets_it_in_the_image(hpcgen: Command) -> None:
    words = ("plan", "--site", "perlmutter", "--stack", "pytorch-ddp", "--json")
    assert '"aws_ofi_nccl"' not in hpcgen(*words).stdout
    assert '"aws_ofi_nccl"' in hpcgen(*words, "--engine", "shifter").stdout


def test_the_default_plugin_changes_nothing_else_and_is_the_same_for_any_job() -> None:
    catalog = Catalog()
    one, two = (hpcgen.plan("lumi-g", "pytorch-ddp", nodes=number) for number in (1, 2))
    assert assemble(one, catalog).labels == assemble(two, catalog).labels
    (reason,) = [str(each) for each in two.block("aws_ofi_nccl").reasons if "asks" in str(each)]  # type: ignore[union-attr]
    assert reason == "RCCL over slingshot asks for aws_ofi_nccl"
    settings = {"pytorch.install": "hub"}
    assert hpcgen.plan("lumi-g", "pytorch-ddp", settings=settings).block("aws_ofi_nccl") is None


def test_the_default_plugin_takes_what_is_set_of_it_and_gives_way_to_another_network() -> None:
    plan = hpcgen.plan("lumi-g", "pytorch-ddp", settings={"aws_ofi_nccl.version": "1.19.0"})
    assert plan.block("aws_ofi_nccl").version == "1.19.0"  # type: ignore[union-attr]
    stack = hpcgen.load_stack("pytorch-ddp")
    run = msgspec.structs.replace(stack.run, environment={"NCCL_NET": "Socket"})
    sockets = hpcgen.plan("lumi-g", msgspec.structs.replace(stack, run=run))
    assert sockets.block("aws_ofi_nccl") is None


def test_gpus_with_a_network_of_their_own_use_that() -> None:
    """Stampede3's H100 nodes have InfiniBand between their GPUs, beside Omni-Path."""
    plan = hpcgen.plan("stampede3", "pytorch-ddp", partition="h100", nodes=2)
    assert check(plan).outcome == "holds"
    case = case_of(plan, Catalog())
    assert {"libibverbs1", "libibverbs"} & set(case.packages)
    on_cpus = case_of(hpcgen.plan("stampede3", "pytorch-ddp", nodes=2), Catalog())
    assert not {"libibverbs1", "libibverbs"} & set(on_cpus.packages)


def test_a_plugin_that_sees_no_fabric_is_told(tmp_path: Path) -> None:
    """Without the host's folders, the plugin of the image has a libfabric that knows TCP alone."""
    text = (ROOT / "site_profiles" / "slurm-nvidia.yaml").read_text("utf-8")
    text = text.replace("\nname: slurm-nvidia\n", "\nname: mine\nfabric: {kind: slingshot, provider: cxi}\n")
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles" / "mine.yaml").write_text(text)
    catalog = Catalog([tmp_path])
    plan = hpcgen.plan("mine", "pytorch-ddp", nodes=2, allow_unsupported=True, catalog=catalog, **PLUGIN)
    found = check(plan, catalog)
    assert found.outcome in ("broken", "doubtful") and "stops as it starts" in found.reason
    assert "fabric.libraries" in found.remedy


def test_nccl_and_a_plugin_that_deadlock_together_are_refused_with_the_way_out() -> None:
    asked = {"aws_ofi_nccl.version": "1.17.3", "nccl.version": "2.28.9"}
    with pytest.raises(ConflictError) as caught:
        hpcgen.plan("alps", "pytorch-horovod", nodes=2, add=["aws_ofi_nccl"], settings=asked)
    said = str(caught.value)
    assert "aws_ofi_nccl 1.17.3" in said and "NCCL 2.28.9" in said and "deadlocks with aws-ofi-nccl 1.17" in said
    assert "take 1.16" in said
    for change in ({"aws_ofi_nccl.version": "1.16.3"}, {"nccl.version": "2.27.7"}):
        hpcgen.plan("alps", "pytorch-horovod", nodes=2, add=["aws_ofi_nccl"], settings={**asked, **change})


def test_the_plugin_that_was_given_up_answers_with_its_successor() -> None:
    with pytest.raises(UnknownNameError, match="use aws_ofi_nccl in its place"):
        hpcgen.plan("lumi-g", "pytorch-ddp", add=["aws-ofi-rccl"])
