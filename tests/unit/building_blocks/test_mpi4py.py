"""mpi4py and the stack mpi-python: how it gets in, which MPI it loads, and how it is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.planning.planner import make_plan
from tests.unit.building_blocks.test_mpi import openmpi_host, site, versions
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, text

BESIDE = {"python": chosen("python", "3.11.2"), "mpi": chosen("mpich", "5.0.2", obtain="wheels")}


def test_the_wheel_is_told_the_name_of_the_library_that_it_loads() -> None:
    for mpi, name in (("mpich", "libmpi.so.12"), ("intel_mpi", "libmpi.so.12"), ("openmpi", "libmpi.so.40")):
        version = {"mpich": "4.3.2", "intel_mpi": "2021.17.2", "openmpi": "5.0.10"}[mpi]
        block, ctx = context("mpi4py", "4.1.2", others={**BESIDE, "mpi": chosen(mpi, version)})
        assert block.environment(ctx).both == {"MPI4PY_LIBMPI": name}
        # A name, not a path: a host's library of that name comes first on LD_LIBRARY_PATH.
        assert "/" not in name


@pytest.mark.parametrize("version", ["3.1.6", "4.0.3", "4.1.2"])
def test_the_source_is_compiled_against_the_images_mpi_without_traces(version: str) -> None:
    block, ctx = context("mpi4py", version, others=BESIDE, install="source")
    steps = text(block.build(ctx))
    assert "MPICC=mpicc" in steps
    assert "--no-index --find-links /opt/hpcgen/wheels/mpi4py mpi4py" in steps
    assert ("cython==" in steps) == (version != "3.1.6")
    assert "rm -rf /opt/hpcgen/build/mpi4py-build" in steps
    assert block.inputs(ctx)[-1].hashed
    assert block.environment(ctx).both == {}


def test_releases_without_a_wheel_that_finds_its_mpi_are_compiled() -> None:
    for version, row in CATALOG.releases("mpi4py").items():
        several, minors = CATALOG.beside.wheels(f"mpi4py-{version}"), ("38", "39", "310", "311", "312")
        lists = [CATALOG.beside.wheels(f"mpi4py-{version}-cp{minor}") for minor in minors]
        named = [several and several.for_python(f"3.{minor[1:]}") for minor in minors]
        assert (all(lists) or all(named)) == (row.only != {"install": ["source"]})


def test_two_ranks_are_started_in_the_self_test_only_without_a_host_mpi() -> None:
    block, ctx = context("mpi4py", "4.1.2", others=BESIDE)
    (ranks,) = [test for test in block.test(ctx) if test.name == "two ranks"]
    assert ranks.expect == "rank 1 of 2"
    assert "env -i " in ranks.command
    assert "HPCGEN_RANKS=2 mpiexec -n 2 /opt/python/bin/python /opt/mpi4py/share/ranks.py" in ranks.command
    block, ctx = context("mpi4py", "4.1.2", facts(mpi=openmpi_host("5.0.8")), others=BESIDE)
    assert [test.name for test in block.test(ctx) if not test.ranks] == ["version"]


@pytest.mark.parametrize(
    ("host", "install"),
    [
        (None, "wheel"),
        ({"flavour": "openmpi", "version": "5.0.8", "abi": "openmpi"}, "wheel"),
        ({"flavour": "openmpi", "version": "5.0.8", "abi": "openmpi", "libraries": ["/opt/host/lib"]}, "source"),
    ],
)
def test_a_host_mpi_that_takes_the_images_place_asks_for_the_source(
    tmp_path: Path, host: dict[str, object] | None, install: str
) -> None:
    catalog, here = site(tmp_path, mpi=host)
    found = make_plan(catalog, here, catalog.stack("mpi-python"))
    (block,) = [each for each in found.blocks if each.name == "mpi4py"]
    assert block.options["install"] == install
    assert versions(found)["mpi4py"] == "4.1.2"


def test_an_old_python_gets_the_release_that_has_it() -> None:
    catalog = Catalog()
    settings = ["base.provider=ubuntu", "ubuntu.version=18.04", "mpi4py.install=source"]
    found = make_plan(catalog, catalog.site("workstation"), catalog.stack("mpi-python"), settings=settings)
    assert versions(found)["mpi4py"] == "3.1.6"
