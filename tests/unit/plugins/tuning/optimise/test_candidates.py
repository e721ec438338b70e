"""The ways to run a program: releases of MPI near the one that is wished for, ways of installing, nothing compiled."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.core.errors import ConflictError
from hpcgen.plugins.tuning.optimise.nearest import nearest_first
from tests.unit.plugins.tuning.optimise.test_modak_scripts import made

TRAINING = {"kind": "ai_training", "framework": "tensorflow", "site": "hlrs-testbed"}


@pytest.mark.parametrize(
    ("wanted", "first"),
    [("==3.1.4.*", "3.4.3"), ("==4.1.9", "4.1.3"), (">=4.2,<5", "4.2.3"), ("==9", "5.0.2"), ("==4.1.2", "4.1.2")],
)
def test_the_nearest_release_is_of_the_same_major_one_if_there_is_any(wanted: str, first: str) -> None:
    assert nearest_first(wanted, ["3.4.3", "4.0.3", "4.1.2", "4.1.3", "4.2.3", "5.0.1", "5.0.2"])[0] == first


@pytest.mark.parametrize(
    ("site", "mpi", "label"),
    [
        ("workstation", {"library": "mpich", "version": "3.1.4"}, "mpich 3.4.3"),
        ("workstation", {"library": "mpich", "version": "4.1"}, ""),
        # Its host has Intel MPI, whose interface Open MPI has not.
        ("supermuc", {"library": "openmpi", "version": "3.1.3"}, "intel_mpi "),
    ],
)
def test_an_mpi_is_a_wish_and_what_is_taken_is_told(site: str, mpi: dict[str, str], label: str) -> None:
    result, _ = made({"kind": "mpi", "stack": "mpi-hello", "site": site, "mpi": mpi})
    told = [each.message for each in result.decision.findings if each.name == "mpi"]
    assert [f"and the image has {label}" in each for each in told] == ([True] if label else [])
    block = result.plan.block("mpi")
    assert block is not None and block.label.startswith(label or "mpich 4.1.")


def ways(**more: Any) -> dict[str, str]:
    """What became of each way of installing without a graph compiler."""
    result, _ = made({**TRAINING, **more})
    return {each.install: each.result for each in result.decision.alternatives if not each.compiler}


def test_every_way_of_installing_and_every_compiler_is_looked_at() -> None:
    assert ways() == {"pip": "chosen", "hub": "planned", "source": "planned"}
    result, _ = made(TRAINING)
    assert {each.compiler for each in result.decision.alternatives} == {"", "xla", "ngraph"}


def test_the_first_way_that_works_is_taken() -> None:
    assert ways(install=["source", "pip"]) == {"source": "chosen", "pip": "planned"}
    assert ways(install=["hub", "pip"], version="2.1") == {"hub": "refused", "pip": "chosen"}


def test_pip_is_any_wheel_of_the_framework() -> None:
    data = {"kind": "ai_training", "framework": "pytorch", "site": "workstation", "install": ["pip"]}
    result, _ = made(data)
    (block,) = [each for each in result.plan.blocks if each.name == "pytorch"]
    assert block.options["install"] == "wheel"  # of the project's own index, for CPUs


def test_nothing_is_compiled_where_the_request_rules_it_out() -> None:
    result, _ = made({"kind": "mpi", "stack": "mpi-hello", "site": "workstation", "compile": False})
    block = result.plan.block("mpi")
    assert block is not None and block.options["obtain"] == "wheels"
    with pytest.raises(ConflictError, match="horovod would be compiled, which the request rules out"):
        made({**TRAINING, "site": "workstation", "stack": "tf-horovod", "framework": None, "compile": False})


def test_a_distributed_program_is_one_of_a_single_process_where_no_stack_of_ranks_has_its_release() -> None:
    data = {**TRAINING, "version": "2.1", "workload": {"distributed": True}}
    result, _ = made(data)
    assert result.decision.stack == "tf"
    assert any("no stack with several ranks can be planned" in each.message for each in result.decision.findings)
    with pytest.raises(ConflictError):
        made({**data, "limits": {"nodes": 2}})
