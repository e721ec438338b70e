"""Packages that bring a second MPI are refused, and those that only sound alike are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.conda import CondaPackage
from hpcgen.planning.contract.verdict import hold_brought
from tests.helpers.contract_cases import INFINIBAND, OMNI_PATH, Workshop, changed
from tests.helpers.mpi_packages import BY_NAME, INNOCENT

BASES = {"apt": "debian", "dnf": "rockylinux", "zypper": "opensuse_leap"}
SECOND = [(manager, name) for manager in BASES for name in BY_NAME[manager]]
SAME_NAME = ("netcdf-mpich-devel", "mpich", "mpich-devel")
"""Of RPMs: their MPICH is libmpi.so.12, as Intel MPI is."""


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "collection")


def asked(manager: str, *names: str) -> list[str]:
    return [f"base.provider={BASES[manager]}", f"os_packages.packages={','.join(names)}"]


@pytest.mark.parametrize(("manager", "name"), SECOND)
def test_a_package_with_another_mpi_is_refused(workshop: Workshop, manager: str, name: str) -> None:
    if name in SAME_NAME:
        plan = workshop.plan(changed(OMNI_PATH, {}), "packages", settings=asked(manager, name))
        assert [each.severity for each in plan.findings if each.name == "one MPI"] == ["warning"]
        return
    with pytest.raises(PolicyError) as caught:
        workshop.plan(changed(OMNI_PATH, {}), "packages", settings=asked(manager, name))
    told = [each for each in caught.value.problems if each.message.startswith(f"the package {name} brings")]
    assert told and name in told[0].remedy and "--allow-unsupported" in told[0].remedy


def test_innocent_ones_pass(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "packages", settings=asked("apt", *INNOCENT))
    assert not [each for each in plan.findings if each.name == "one MPI"]


def test_what_serves_instead_is_named_and_a_block_only_if_there_is_one(workshop: Workshop) -> None:
    names = ("libhdf5-openmpi-dev", "libhypre-dev", "libparpack2-dev")
    with pytest.raises(PolicyError) as caught:
        workshop.plan(changed(OMNI_PATH, {}), "packages", settings=asked("apt", *names))
    text = str(caught.value)
    assert "instead of libhypre-dev, use the block hypre (over the image's MPI)" in text
    assert "use libarpack2-dev (without MPI)" in text
    blocks = Catalog([workshop.folder]).names("block")
    assert ("the block hdf5" in text) == ("hdf5" in blocks)


def test_an_mpi_whose_library_has_the_same_name_is_a_warning(workshop: Workshop) -> None:
    plan = workshop.plan(changed(INFINIBAND, {}), "packages", settings=asked("apt", "libhdf5-openmpi-dev"))
    (found,) = [each for each in plan.findings if each.name == "one MPI"]
    assert found.severity == "warning" and "programs may load either" in found.message


def test_without_an_mpi_of_a_block_the_distributions_may_serve(workshop: Workshop) -> None:
    site = changed(OMNI_PATH, {})
    settings = ["base.provider=debian", "os_packages.packages=libopenmpi-dev"]
    plan = workshop.plan(site, "serial", settings=settings)
    assert not [each for each in plan.findings if each.name == "one MPI"]


def test_what_is_overruled_is_a_warning(workshop: Workshop) -> None:
    settings = asked("apt", "libopenmpi3t64")
    plan = workshop.plan(changed(OMNI_PATH, {}), "packages", settings=settings, allow_unsupported=True)
    assert [each.severity for each in plan.findings if each.name == "one MPI"] == ["warning"]


def test_a_chain_of_dependencies_is_told_from_its_first_package(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "packages", settings=asked("apt", "libhdf5-dev"))
    catalog = Catalog([workshop.folder])
    assert not hold_brought(plan, catalog, [])
    with pytest.raises(PolicyError) as caught:
        hold_brought(plan, catalog, [("octave", "libpetsc-real3.18", "libopenmpi3")])
    (problem,) = caught.value.problems
    assert "octave depends on libpetsc-real3.18, which depends on libopenmpi3" in problem.message
    assert problem.remedy.startswith("leave octave out")


@pytest.mark.parametrize("need", BY_NAME["conda"])
def test_conda_packages_for_another_mpi_are_refused(workshop: Workshop, need: str) -> None:
    with pytest.raises(PolicyError, match="conda package"):
        workshop.plan(changed(OMNI_PATH, {}), "conda", settings=[f"conda_packages.packages={need}"])


@pytest.mark.parametrize("need", ["mpich", "hdf5=*=mpi_mpich_*", "hdf5=*=nompi_*", "numpy"])
def test_conda_packages_over_the_images_mpi_pass(workshop: Workshop, need: str) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "conda", settings=[f"conda_packages.packages={need}"])
    assert not [each for each in plan.findings if each.name == "conda packages"]


def test_what_the_solver_brings_is_told_with_its_chain(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "conda", settings=["conda_packages.packages=app"])

    def package(name: str, build: str, *depends: str) -> CondaPackage:
        url = f"https://conda.example.org/main/linux-64/{name}-1.0-{build}.conda"
        about = {"version": "1.0", "build": build, "subdir": "linux-64", "sha256": "a" * 64, "url": url}
        return CondaPackage(name=name, depends=list(depends), **about)

    chosen = [package("app", "0", "hdf5 >=1"), package("hdf5", "mpi_mpich_0", "mpich"), package("mpich", "h1_0")]
    with pytest.raises(PolicyError, match="app depends on hdf5, which depends on mpich"):
        hold_brought(plan, Catalog([workshop.folder]), [], chosen)
    assert not hold_brought(plan, Catalog([workshop.folder]), [], [package("mpich", "external_0")])
