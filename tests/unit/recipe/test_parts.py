"""Wheels for a newer C library than the base has are refused while planning."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError

STANDALONE = {"python.obtain": "standalone"}


@pytest.mark.parametrize("stack", ["pytorch", "tf", "jax", "openvino"])
def test_lists_for_a_newer_c_library_are_refused_with_the_reason(stack: str) -> None:
    settings = {**STANDALONE, "ubuntu.version": "18.04"}
    if stack == "tf":
        settings["tensorflow.version"] = ">=2.18"
    with pytest.raises(ConflictError) as failure:
        hpcgen.plan("workstation", stack, settings=settings)
    problem = failure.value.problems[0]
    assert "glibc 2.28" in problem.message and "ubuntu 18.04 has glibc 2.27" in problem.message
    assert "ubuntu 20.04" in problem.remedy and "18.04" not in problem.remedy


@pytest.mark.parametrize(
    ("base", "version"), [("debian", "11"), ("rockylinux", "8"), ("opensuse_leap", "15.6"), ("ubuntu", "20.04")]
)
def test_bases_that_are_new_enough_are_not(base: str, version: str) -> None:
    settings = {**STANDALONE, "base.provider": base, f"{base}.version": version, "python.version": "3.12.14"}
    assert hpcgen.plan("workstation", "tf", settings=settings).blocks[0].label == f"{base} {version}"


def test_wheels_of_mpi_are_looked_at_too() -> None:
    settings = {"ubuntu.version": "18.04", "mpi.provider": "mpich", **STANDALONE, "mpich.obtain": "wheels"}
    with pytest.raises(ConflictError, match=r"mpich .* glibc 2\.28 .* ubuntu 18\.04 has glibc 2\.27"):
        hpcgen.plan("workstation", "mpi-hello", settings=settings)


def test_python_of_its_time_has_lists_of_its_time() -> None:
    plan = hpcgen.plan("workstation", "tf", settings={"ubuntu.version": "18.04", "tensorflow.version": "2.3.4"})
    assert plan.blocks[0].label == "ubuntu 18.04"


def test_every_list_for_one_python_says_which_c_library_it_is_made_for() -> None:
    catalog = Catalog()
    folder = Path(catalog.folders[-1], "building_blocks", "wheels")
    names = [path.stem for path in folder.glob("*.txt") if path.stem.rpartition("-cp")[2].isdigit()]
    silent = [name for name in names if not getattr(catalog.beside.wheels(name), "glibc", "")]
    assert names and silent == []
