"""The built-in site profiles: they load, they say what their sources say, and every fact has a source."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.catalog import Catalog
from hpcgen.model.site import Site

# Identity and remarks, which are no facts about the machine.
NO_FACTS = {"name", "title", "links", "notes", "sources", "extends", "abstract"}
BUILT_IN = ["hlrs-testbed", "supermuc", "workstation"]
ALL = [*BUILT_IN, "lrz"]


def leaves(data: Any, path: str = "") -> list[str]:
    if not isinstance(data, dict) or not data:
        return [path]
    return [leaf for key, value in data.items() for leaf in leaves(value, f"{path}.{key}" if path else str(key))]


def covered(path: str, sources: dict[str, Any]) -> bool:
    steps = path.split(".")
    return any(".".join(steps[:end]) in sources for end in range(1, len(steps) + 1))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


@pytest.mark.parametrize("name", BUILT_IN)
def test_profile_loads(catalog: Catalog, name: str) -> None:
    site = catalog.site(name)
    assert isinstance(site, Site)
    assert site.name == name
    assert not site.abstract


@pytest.mark.parametrize("name", ALL)
def test_every_fact_has_a_source(catalog: Catalog, name: str) -> None:
    data = dict(catalog.site_document(name).data)
    sources = data["sources"]
    facts = [path for path in leaves(data) if path.split(".")[0] not in NO_FACTS]
    assert [path for path in facts if not covered(path, sources)] == []


@pytest.mark.parametrize("name", ALL)
def test_every_source_is_of_a_fact(catalog: Catalog, name: str) -> None:
    data = catalog.site_document(name).data
    for path in data["sources"]:
        value: Any = data
        for step in path.split("."):
            assert step in value, path
            value = value[step]


def test_the_coverage_test_notices_a_fact_without_source() -> None:
    assert leaves({"a": {"b": 1, "c": [1]}}) == ["a.b", "a.c"]
    assert covered("a.b", {"a": None})
    assert covered("a.b", {"a.b": None})
    assert not covered("a.bc", {"a.b": None})
    assert not covered("a", {"a.b": None})


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
    assert mpi.version == "2019.6.166"
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
