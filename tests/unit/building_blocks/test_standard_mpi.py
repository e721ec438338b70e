"""Programs linked with the binary interface of the MPI 5 standard: where, with which MPI, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from tests.unit.building_blocks.test_mpi import site, versions

INTEL = {
    "flavour": "intel",
    "version": "2021.18.0",
    "abi": "mpi5",
    "pmi": ["pmi2"],
    "libraries": ["/opt/host/lib"],
    "binds": [{"source": "/apps/impi", "target": "/opt/host"}],
}
OPEN_MPI = {**INTEL, "flavour": "openmpi", "version": "6.0.0", "pmi": ["pmix"]}
MPICH = {**INTEL, "flavour": "mpich", "version": "5.0.2"}


def planned(folder: Path, stack: str, mpi: dict[str, Any], *settings: str, **asked: Any) -> Plan:
    catalog, here = site(folder, mpi=mpi, engine="apptainer")
    document = catalog.site_document("here")
    return make_plan(catalog, here, catalog.stack(stack), settings=settings, site_document=document, **asked)


def recipe(folder: Path, plan: Plan) -> str:
    return make_kit(plan, Catalog([folder])).files["Singularity.def"].text


@pytest.mark.parametrize("host", [INTEL, OPEN_MPI, MPICH], ids=lambda host: host["flavour"])
def test_every_flavour_of_host_gets_mpich_and_programs_of_the_standards_interface(
    tmp_path: Path, host: dict[str, Any]
) -> None:
    plan = planned(tmp_path, "mpi-hello", host)
    assert versions(plan)["mpich"] == "5.0.2"
    assert plan.mpi.abi == "mpi5"
    assert "mpicc_abi -O2 -rdynamic -o /opt/rank_test/bin/rank_test" in recipe(tmp_path, plan)
    assert not [each for each in plan.findings if each.name.startswith("MPI")]


def test_a_host_that_is_described_by_its_own_interface_gets_programs_of_that(tmp_path: Path) -> None:
    plan = planned(tmp_path, "mpi-hello", {**MPICH, "abi": "mpich"}, "mpich.obtain=wheels", "mpi.provider=mpich")
    assert (versions(plan)["mpich"], plan.mpi.abi) == ("5.0.2", "mpich")
    assert "mpicc_abi" not in recipe(tmp_path, plan)


@pytest.mark.parametrize(("host", "block"), [(MPICH, "mpich"), (INTEL, "intel_mpi")])
def test_a_host_that_only_starts_ranks_finds_an_mpi_of_its_family(
    tmp_path: Path, host: dict[str, Any], block: str
) -> None:
    """Nothing is replaced, so that programs need no other interface than that of the image's MPI."""
    plan = planned(tmp_path, "mpi-hello", {**host, "libraries": [], "binds": []})
    assert block in versions(plan)
    assert plan.mpi.abi == plan.mpi.family


def test_mpi4py_is_compiled_for_it_by_a_release_that_knows_it(tmp_path: Path) -> None:
    plan = planned(tmp_path, "mpi-python", INTEL)
    assert versions(plan)["mpi4py"] == "4.1.2"
    assert "MPICC=mpicc_abi" in recipe(tmp_path, plan)
    with pytest.raises(ConflictError, match=r"no module for the MPI 5 standard's interface"):
        recipe(tmp_path, planned(tmp_path, "mpi-python", INTEL, "mpi4py.install=wheel"))
    with pytest.raises(HpcgenError, match=r"linked through the MPI 5 standard's interface, new in 4\.1"):
        planned(tmp_path, "mpi-python", INTEL, "mpi4py.version=3.1.6")


def test_the_measurements_of_a_network_are_linked_with_it(tmp_path: Path) -> None:
    text = recipe(tmp_path, planned(tmp_path, "net-test", OPEN_MPI))
    assert "CC=mpicc_abi CXX=mpicxx_abi" in text
    assert "LINKER=mpicc_abi" in text


@pytest.mark.parametrize(("stack", "block"), [("gromacs", "gromacs"), ("tf-horovod", "horovod")])
def test_what_nobody_has_linked_with_it_is_refused(tmp_path: Path, stack: str, block: str) -> None:
    with pytest.raises(PolicyError) as caught:
        planned(tmp_path, stack, INTEL)
    (found,) = [each for each in caught.value.problems if block in each.message]
    assert "is linked with mpich's own library, and not with libmpi_abi.so.1" in found.message
    assert "use a profile with `abi: mpich`" in found.remedy
    with pytest.raises(PolicyError) as other:
        planned(tmp_path, stack, OPEN_MPI)
    assert all("abi: mpich" not in each.remedy for each in other.value.problems)
    overruled = planned(tmp_path, stack, INTEL, allow_unsupported=True)
    assert [each.severity for each in overruled.findings if each.message == found.message] == ["warning"]


def test_another_mpi_of_the_image_cannot_be_replaced_by_it(tmp_path: Path) -> None:
    said = r"openmpi cannot work at this site, whose openmpi 6\.0\.0 has the binary interface of the MPI 5 standard"
    with pytest.raises(ConflictError, match=said):
        planned(tmp_path, "mpi-hello", OPEN_MPI, "mpi.provider=openmpi")
    with pytest.raises(HpcgenError, match=r"linked with libmpi_abi\.so\.1, which releases before"):
        planned(tmp_path, "mpi-hello", MPICH, "mpich.version=4.3.2")


def test_a_host_that_may_have_the_library_by_another_name_is_doubted(tmp_path: Path) -> None:
    plan = planned(tmp_path, "mpi-hello", {**MPICH, "version": "5.0.1"})
    (found,) = [each for each in plan.findings if each.name == "MPI ABI"]
    assert "the host's mpich 5.0.1 calls its library of the MPI 5 standard libmpi_abi.so.0" in found.message
