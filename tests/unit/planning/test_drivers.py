"""The driver that is planned for: the profile's, that of ``--driver``, or an old one where nobody names it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen import api
from hpcgen.blocks.requirements import in_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.nodes import Gpu
from hpcgen.kit.plan_difference import replanned
from hpcgen.planning.drivers import assumed, with_driver, with_drivers
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.matrix import concrete_sites
from tests.conftest import Command

CATALOG = Catalog()
replace = msgspec.structs.replace


def gpu(vendor: str, **facts: str) -> Gpu:
    return msgspec.convert({"vendor": vendor, "model": "X", **facts}, Gpu)


@pytest.mark.parametrize(
    ("facts", "driver"),
    [
        ({"vendor": "nvidia"}, "535"),
        ({"vendor": "nvidia", "capability": "8.0"}, "535"),
        ({"vendor": "nvidia", "capability": "3.7"}, "470"),
        ({"vendor": "nvidia", "capability": "10.0"}, "570"),
        ({"vendor": "nvidia", "capability": "12.0"}, "570"),
        ({"vendor": "nvidia", "capability": "10.3"}, "575"),
        ({"vendor": "nvidia", "capability": "11.0"}, "580"),
        ({"vendor": "amd", "target": "gfx942"}, "6.3"),
        ({"vendor": "amd", "target": "gfx950"}, "30.10"),
        ({"vendor": "amd"}, "6.3"),
    ],
)
def test_the_assumed_driver_is_old_and_never_older_than_the_gpu(facts: dict[str, str], driver: str) -> None:
    row = assumed(CATALOG, gpu(**facts))
    assert row is not None and row.driver == driver


def test_a_collection_knows_its_own_machines_better(tmp_path: Path) -> None:
    (tmp_path / "building_blocks").mkdir()
    source = '{from: "our administrators", checked: "2026-11-28", verified: "yes"}'
    (tmp_path / "building_blocks" / "gpu_drivers.yaml").write_text(
        f'drivers: [{{vendor: nvidia, driver: "580", why: "all of ours have it", source: {source}}}]\n'
    )
    plan = api.plan("leonardo", "pytorch-ddp", catalog=Catalog([tmp_path]))
    assert [each.message for each in plan.findings if each.name == "assumed driver"] == [
        "no driver of A100 (custom, 64 GB) is named, so this is planned for 580, all of ours have it"
    ]


def test_an_unknown_driver_is_planned_for_and_said_on_one_line() -> None:
    plan = api.plan("leonardo", "pytorch-ddp")
    (finding,) = [each for each in plan.findings if each.name == "assumed driver"]
    assert "no driver of A100 (custom, 64 GB) is named, so this is planned for 535" in finding.message
    assert "--driver VERSION" in finding.remedy
    block = plan.block("pytorch")
    assert block is not None and block.version == "2.10.0"
    assert "not 2.11.0: it needs driver >=580, the node has 535 (assumed)" in map(str, block.reasons)


def test_what_asks_nothing_of_the_driver_is_without_that_line() -> None:
    plan = api.plan("leonardo", "mpi-hello")
    assert not [each for each in plan.findings if each.name == "assumed driver"]


def test_the_command_line_says_the_real_one(hpcgen: Command) -> None:
    words = ("--site", "leonardo", "--stack", "pytorch-ddp")
    done = hpcgen("plan", *words, "--driver", "590.48.01", "--json")
    plan = api.plan("leonardo", "pytorch-ddp")
    assert '"version": "2.15.0"' in done.stdout and "assumed driver" not in done.stdout
    assert "--driver 590.48.01" in done.stdout and "--driver" not in plan.command


def test_no_driver_for_nodes_without_gpus_nor_of_another_form() -> None:
    for site, driver, said in (
        ("supermuc", "580", "has no GPU"),
        ("leonardo", "new one", "not a driver version"),
        ("lumi-g", "6.10.5", "kernel module"),
    ):
        with pytest.raises(InputError, match=said):
            with_driver(CATALOG.site(site), None, driver)


def test_a_conflict_with_the_assumed_driver_says_how_to_name_the_real_one() -> None:
    with pytest.raises(HpcgenError) as refused:
        api.plan("leonardo", "pytorch-ddp", settings={"pytorch.version": "2.15.0"})
    assert "535 (assumed)" in str(refused.value) and "--driver VERSION" in str(refused.value)


def test_a_refusal_of_idle_gpus_says_that_the_driver_is_assumed() -> None:
    catalog = CATALOG
    site = catalog.site("hunter")
    partition = site.partitions["mi300a"]
    assert partition.gpu is not None
    gpu = replace(partition.gpu, driver="5.7", driver_assumed=True)
    site = replace(site, partitions={**site.partitions, "mi300a": replace(partition, gpu=gpu)})
    with pytest.raises(HpcgenError) as refused:
        make_plan(catalog, site, catalog.stack("jax"))
    assert "the node's driver is 5.7 (assumed), and rocm60 needs 6.1" in str(refused.value)
    assert "--driver VERSION" in str(refused.value)
    with pytest.raises(HpcgenError) as refused:
        make_plan(catalog, site, catalog.stack("tf"))
    assert "--driver VERSION" not in str(refused.value)


def test_the_same_site_is_the_same_record() -> None:
    site = CATALOG.site("leonardo")
    assert with_drivers(CATALOG, site) is with_drivers(CATALOG, site)
    assert with_drivers(CATALOG, CATALOG.site("perlmutter")) is CATALOG.site("perlmutter")


OFTEN = ("pytorch-ddp", "jax", "onnxruntime", "vllm")
STACKS = [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in CATALOG.names("stack")]


@pytest.mark.parametrize("stack", STACKS)
def test_no_plan_needs_a_newer_driver_than_is_known_or_assumed(stack: str) -> None:
    for name in concrete_sites(CATALOG):
        for partition, node in CATALOG.site(name).partitions.items():
            if node.gpu is None:
                continue
            try:
                plan = api.plan(name, stack, partition=partition, account="x", catalog=CATALOG)
            except HpcgenError:
                continue
            driver = plan.site.partitions[partition].gpu.driver  # type: ignore[union-attr]
            asked = {each.label: each.host["driver"] for each in plan.blocks if "driver" in each.host}
            assert driver is not None or not asked
            assert [label for label, versions in asked.items() if not in_range(driver or "", versions)] == []


def test_what_was_planned_for_a_driver_that_somebody_named_is_planned_for_it_again() -> None:
    site = with_driver(CATALOG.site("leonardo"), None, "590.48.01")
    before = api.plan(site, "pytorch-ddp", catalog=CATALOG)
    again = replanned(before, CATALOG, CATALOG.stack("pytorch-ddp"))
    assert [each.label for each in again.blocks] == [each.label for each in before.blocks]
