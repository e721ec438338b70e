"""The built-in site profiles: they load, they say what their sources say, and every fact has a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.collections import built_in
from hpcgen.core.config.provenance import NO_FACTS, facts_of
from hpcgen.core.config.yamlfile import load
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.site import Site
from hpcgen.launch.script import job_script
from hpcgen.planning.planner import make_plan

FOLDER = built_in() / "site_profiles"
ALL = sorted(path.stem for path in FOLDER.glob("*.yaml"))
ABSTRACT = [name for name in ALL if load(FOLDER / f"{name}.yaml", name).data.get("abstract")]
SITES = [name for name in ALL if name not in ABSTRACT]


def leaves(data: Any, path: str = "") -> list[str]:
    if not isinstance(data, dict) or not data:
        return [path]
    return [leaf for key, value in data.items() for leaf in leaves(value, f"{path}.{key}" if path else str(key))]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.mark.parametrize("name", SITES)
def test_profile_loads(catalog: Catalog, name: str) -> None:
    site = catalog.site(name)
    assert isinstance(site, Site)
    assert site.name == name
    assert not site.abstract


@pytest.mark.parametrize("name", ABSTRACT)
def test_an_abstract_profile_is_a_parent(name: str) -> None:
    parents = {load(FOLDER / f"{child}.yaml", child).data.get("extends") for child in ALL}
    assert name in parents


@pytest.mark.parametrize("name", SITES)
def test_every_site_plans_a_job_of_mpi_on_every_partition(catalog: Catalog, name: str) -> None:
    site, stack = catalog.site(name), catalog.stack("mpi-hello")
    for partition in site.partitions:
        plan = make_plan(catalog, site, stack, partition=partition)
        assert plan.block("mpi") is not None


@pytest.mark.parametrize("name", SITES)
def test_every_site_says_what_nobody_has_verified(catalog: Catalog, name: str) -> None:
    site = catalog.site(name)
    plan = make_plan(catalog, site, catalog.stack("mpi-hello"))
    said = any(finding.name == "unverified-facts" for finding in plan.findings)
    assert said == any(source.verified == "no" for source in site.sources.values())


@pytest.mark.parametrize("name", SITES)
def test_layouts_fit_their_nodes(catalog: Catalog, name: str) -> None:
    site = catalog.site(name)
    for layout in site.layouts:
        cpu = site.partitions[layout.partition].cpu
        assert layout.ranks_per_node * layout.threads_per_rank <= cpu.cores * cpu.threads_per_core


@pytest.mark.parametrize("name", SITES)
def test_a_title_fits_a_list(catalog: Catalog, name: str) -> None:
    assert 10 <= len(catalog.site(name).title) <= 100


@pytest.mark.parametrize("name", SITES)
def test_a_closed_site_is_archived(catalog: Catalog, name: str) -> None:
    site = catalog.site(name)
    assert site.archived or site.closed is None


def test_every_plan_for_a_closed_site_says_so(catalog: Catalog) -> None:
    for stack in ("mpi-hello", "onnxruntime"):
        plan = make_plan(catalog, catalog.site("stampede2"), catalog.stack(stack))
        (finding,) = [each for each in plan.findings if each.name == "site-closed"]
        assert finding.severity == "warning"
        assert "2024-01-31" in finding.message
    open_site = make_plan(catalog, catalog.site("stampede3"), catalog.stack("mpi-hello"))
    assert "site-closed" not in [each.name for each in open_site.findings]


@pytest.mark.parametrize("name", ALL)
def test_every_fact_has_a_source(catalog: Catalog, name: str) -> None:
    facts = facts_of(catalog.site_document(name))
    assert [fact.path for fact in facts if fact.source is None] == []


@pytest.mark.parametrize("name", ALL)
def test_every_source_is_of_a_fact(catalog: Catalog, name: str) -> None:
    data = catalog.site_document(name).data
    for path in data["sources"]:
        value: Any = data
        for step in path.split("."):
            assert step in value, path
            value = value[step]


def test_lrz_is_a_family_and_no_site(catalog: Catalog) -> None:
    assert catalog.site_document("lrz").data["abstract"] is True


def test_supermuc_inherits_and_adds(catalog: Catalog) -> None:
    site = catalog.site("supermuc")
    assert site.scheduler.kind == "slurm"
    assert site.scheduler.modules == ["slurm_setup"]
    assert "--ear=off" in site.scheduler.directives
    assert "--no-requeue" in site.scheduler.directives
    assert [name for name, engine in site.containers.engines.items() if engine.allowed] == ["charliecloud"]
    assert all(engine.reason for engine in site.containers.engines.values() if not engine.allowed)
    assert not site.network.internet.login
    assert site.partitions["thin"].memory.usable_gb == 77
    assert (site.layouts[0].ranks_per_node, site.layouts[0].threads_per_rank) == (4, 12)


def test_supermuc_binds_the_hosts_mpi(catalog: Catalog) -> None:
    mpi = catalog.site("supermuc").mpi
    assert mpi is not None
    assert mpi.root is not None
    assert mpi.version == "2019.6.154"
    for library in mpi.libraries:
        assert library.startswith(mpi.root)
        assert any(library.startswith(bind.target + "/") for bind in mpi.binds)


def test_versions_stay_text(catalog: Catalog) -> None:
    site = catalog.site("hlrs-testbed")
    gpu = site.partitions["gpu"].gpu
    assert gpu is not None
    assert (gpu.capability, gpu.driver) == ("6.1", "418.39")
    assert site.sources["partitions.gpu.gpu.driver"].verified == "no"
    assert site.containers.engines["singularity"].version == "3.4.1"


def test_the_systems_of_the_supermuc_paper(catalog: Catalog) -> None:
    supermuc = catalog.site("supermuc")
    thin, fat = supermuc.partitions["thin"], supermuc.partitions["fat"]
    assert (thin.nodes, fat.nodes) == (8 * 792, 144)
    assert ((thin.nodes or 0) + (fat.nodes or 0)) * thin.cpu.cores == 311_040
    assert (thin.memory.total_gb, fat.memory.total_gb) == (96, 768)
    assert supermuc.fabric.provider == "psm2"
    assert supermuc.system.user_namespaces
    intel = catalog.site("intel-cluster")
    gold = intel.partitions["gold-6148"].cpu
    assert (gold.model, gold.cores, gold.sockets) == ("Intel Xeon Gold 6148", 2 * 20, 2)
    stampede2 = catalog.site("stampede2")
    skx = stampede2.partitions["skx"].cpu
    assert (skx.model, skx.cores, skx.sockets) == ("Intel Xeon Platinum 8160", 2 * 24, 2)
    layouts = [(each.layouts[0].ranks_per_node, each.layouts[0].threads_per_rank) for each in (intel, stampede2)]
    assert layouts == [(4, 10), (4, 11)]
    assert "7453" in intel.layouts[0].measured
    assert "17831" in stampede2.layouts[0].measured


def test_the_system_of_the_modak_paper(catalog: Catalog) -> None:
    site = catalog.site("hlrs-testbed")
    node = site.partitions["gpu"]
    assert (node.nodes, node.cpu.model, node.memory.total_gb) == (5, "Intel Xeon E5-2630 v4", 125)
    assert node.gpu is not None
    assert (node.gpu.model, node.gpu.count, node.gpu.data_center) == ("GeForce GTX 1080 Ti", 1, False)
    assert site.scheduler.kind == "torque"
    assert site.containers.unprivileged_build


GPUS = [
    ("crpl-leia", "p40", "Tesla P40", 2, 24, "6.1"),
    ("crpl-leia", "gtx1080", "GeForce GTX 1080", 1, 8, "6.1"),
    ("crpl-skywalker", "v100", "Tesla V100", 2, 16, "7.0"),
    ("crpl-skywalker", "titan-v", "TITAN V", 1, 12, "7.0"),
    ("caviness", "gpu-p100", "Tesla P100", 2, 12, "6.0"),
    ("darwin", "gpu-t4", "Tesla T4", 1, 16, "7.5"),
    ("darwin", "gpu-v100", "Tesla V100", 4, 16, "7.0"),
    ("darwin", "gpu-mi50", "Radeon Instinct MI50", 1, 32, "gfx906"),
]
"""The GPUs of the HiT paper: site, partition, model, count, memory, compute capability or AMD's target."""


@pytest.mark.parametrize(("site", "partition", "model", "count", "memory", "code"), GPUS)
def test_the_gpus_of_the_hit_paper(
    catalog: Catalog, site: str, partition: str, model: str, count: int, memory: int, code: str
) -> None:
    gpu = catalog.site(site).partitions[partition].gpu
    assert gpu is not None
    assert (gpu.model, gpu.count, gpu.memory_gb) == (model, count, memory)
    assert code in (gpu.capability, gpu.target)
    # No source names a driver, and a wrong one would bound CUDA wrongly.
    assert gpu.driver is None


def test_the_nodes_of_the_hit_paper(catalog: Catalog) -> None:
    darwin, caviness = catalog.site("darwin"), catalog.site("caviness")
    counted = {name: partition.nodes for name, partition in darwin.partitions.items()}
    assert (counted["gpu-t4"], counted["gpu-v100"], counted["gpu-mi50"]) == (9, 3, 1)
    # One node with an MI100 came after the 105 of the paper.
    assert sum(nodes or 0 for nodes in counted.values()) == 105 + 1
    gen1 = caviness.partitions["gen1"]
    assert (gen1.nodes, gen1.cpu.cores, gen1.cpu.target) == (126, 2 * 18, "broadwell")
    for name in ("crpl-leia", "crpl-skywalker"):
        for partition in catalog.site(name).partitions.values():
            assert partition.cpu.model == "AMD Ryzen Threadripper 1950X"
        assert catalog.site(name).containers.preferred == "docker"


def test_taccs_systems_share_what_a_job_needs(catalog: Catalog) -> None:
    for name in ("stampede2", "stampede3", "frontera"):
        site = catalog.site(name)
        assert site.mpi is not None
        assert (site.mpi.launcher, site.mpi.flavour) == ("ibrun", "intel")
        assert site.scheduler.gpu_request == "none"
    assert catalog.site("frontera").containers.engines["apptainer"].modules == ["tacc-apptainer"]
    assert list(catalog.site("stampede2").containers.engines) == ["singularity"]


def test_a_job_of_taccs_is_started_by_ibrun_and_asks_for_no_gpus(catalog: Catalog) -> None:
    site, stack = catalog.site("frontera"), catalog.stack("mpi-hello")
    plan = make_plan(catalog, site, stack, partition="rtx", job=JobRequest(nodes=2, ranks_per_node=4))
    text = job_script(plan, {})[1]
    assert "module load tacc-apptainer\n" in text
    assert "#SBATCH --partition=rtx\n" in text
    assert "--gres" not in text
    assert text.splitlines()[-1].startswith("ibrun ")


def test_a_job_of_delawares_loads_software_by_valet_and_asks_for_memory(catalog: Catalog) -> None:
    site, stack = catalog.site("darwin"), catalog.stack("mpi-hello")
    plan = make_plan(catalog, site, stack, partition="gpu-v100", job=JobRequest(nodes=2, gpus_per_node=4))
    lines = job_script(plan, {})[1].splitlines()
    assert lines[0] == "#!/bin/bash -l"
    assert {"#SBATCH --partition=gpu-v100", "#SBATCH --gpus-per-node=4", "#SBATCH --mem=0"} <= set(lines)
    assert {"vpkg_require openmpi", "vpkg_require apptainer"} <= set(lines)
    assert lines[-1].startswith("mpirun -n 8 ")
    caviness = make_plan(catalog, catalog.site("caviness"), catalog.stack("onnxruntime"), partition="gpu-p100")
    asked = [line for line in job_script(caviness, {})[1].splitlines() if "--gres" in line or "--gpus" in line]
    assert asked == ["#SBATCH --gres=gpu:p100:2"]


@pytest.mark.parametrize("parent", ["crpl-leia", "stampede3", "slurm-nvidia"])
def test_a_second_site_that_differs_in_one_fact_is_one_line(tmp_path: Path, parent: str) -> None:
    partition = Catalog().site(parent).default_partition
    folder = tmp_path / "site_profiles"
    folder.mkdir()
    fact = f"partitions: {{{partition}: {{memory: {{total_gb: 4711}}}}}}\n"
    (folder / "second.yaml").write_text(f"name: second\nextends: {parent}\n{fact}", encoding="utf-8")
    catalog = Catalog([tmp_path])
    first, second = catalog.site_document(parent).data, catalog.site_document("second").data
    assert second["sources"] == first["sources"]
    ours, theirs = (
        {leaf: _at(data, leaf) for leaf in leaves({k: v for k, v in data.items() if k not in NO_FACTS})}
        for data in (first, second)
    )
    changed = {path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path)}
    assert changed == {f"partitions.{partition}.memory.total_gb"}
    assert catalog.site("second").partitions[partition].memory.total_gb == 4711


def _at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[step]
    return data
