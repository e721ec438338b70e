"""``--add`` of packages beside blocks."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, InputError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit


def planned(*added: str, stack: str = "mpi-hello") -> Plan:
    return hpcgen.plan("workstation", stack, add=added)


def test_packages_of_both_kinds_come_into_the_image() -> None:
    plan = planned("pip:h5py==3.11", "apt:git", "pip:click==8.1.8", "jemalloc")
    kit = make_kit(plan, default_catalog())
    assert kit.files["files/requirements/python_packages.txt"].text.split() == ["h5py==3.11", "click==8.1.8"]
    assert " git " in kit.recipe and plan.block("jemalloc") is not None
    assert "--add pip:h5py==3.11 --add apt:git" in plan.command


def test_what_a_block_brings_is_that_block() -> None:
    plan = planned("pip:mpi4py>=4", "pip:torch==2.7.1+cu126")
    assert {"mpi4py", "pytorch"} <= {each.name for each in plan.blocks}
    torch = plan.block("pytorch")
    assert torch is not None and torch.version == "2.7.1" and plan.block("python_packages") is None
    with pytest.raises(ConflictError, match=r"--add pip:torch>=99 asks for pytorch >=99"):
        planned("pip:torch>=99")


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        planned("pip:h5py", "apt:--force", "rpm:git", "pip:git+https://example.org/a.git")
    said = str(caught.value)
    assert said.count("--add: ") == 4
    assert "such as pip:h5py==3.11.0" in said and "such as apt:git" in said
    assert "'rpm:git' is neither a block nor a package" in said
