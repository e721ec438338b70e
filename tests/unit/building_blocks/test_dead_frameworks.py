"""CNTK and nGraph: what can still be had, on a base of their time, and what is refused and why."""

from __future__ import annotations

from typing import Any

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, PolicyError
from hpcgen.recipe.assemble import assemble, notices


def with_mpi(**blocks: Any) -> Any:
    """A stack with CNTK that starts ranks."""
    run = {"command": ["python3", "train.py"], "gpus_per_node": 0}
    return hpcgen.load_stack({"name": "ours", "title": "Ours", "blocks": {"cntk": {}, **blocks}, "run": run})


@pytest.mark.parametrize(("stack", "block"), [("cntk", "cntk 2.7"), ("tf-ngraph", "ngraph 0.18.0")])
def test_they_come_with_ubuntu_18_04_and_hashes_and_a_warning(stack: str, block: str) -> None:
    plan = hpcgen.plan("supermuc", stack)
    assert {"ubuntu 18.04", "python 3.6.9", block} <= {each.label for each in plan.blocks}
    assert any(each.name == "unmaintained" and each.message.startswith(block) for each in plan.findings)
    assert not any("no hashed wheel list" in each for each in notices(assemble(plan, default_catalog())))


def test_cntk_alone_binds_no_mpi_of_the_host() -> None:
    plan = hpcgen.plan("supermuc", "cntk")
    kit = hpcgen.render(plan).files
    assert plan.block("mpi") is None
    assert "mpiexec" not in kit["job.slurm"].text and "/opt/intel" not in kit["job.slurm"].text
    assert "private MPI" not in [each.name for each in plan.findings]


def test_the_hosts_mpi_is_refused_beside_cntks_own() -> None:
    """At SuperMUC-NG Intel MPI would be bound, whose library has the name of CNTK's and other functions."""
    with pytest.raises(PolicyError) as refused:
        hpcgen.plan("supermuc", with_mpi(mpi={}))
    told = [problem.message for problem in refused.value.problems]
    assert any("cntk brings its own libmpi.so.12" in each and "the host's intel" in each for each in told)


def test_another_mpi_of_that_name_in_the_image_is_refused_too() -> None:
    with pytest.raises(PolicyError, match=r"cntk brings its own libmpi\.so\.12.*mpich"):
        hpcgen.plan("workstation", with_mpi(mpi={"provider": "mpich"}))


def test_there_is_no_cntk_for_arm() -> None:
    with pytest.raises(ConflictError, match="aarch64"):
        hpcgen.plan("alps", "cntk")


def test_ngraph_computes_on_cpus_where_the_node_has_gpus() -> None:
    plan = hpcgen.plan("hlrs-testbed", "tf-ngraph")
    assert plan.block("cuda") is None and plan.job.gpus_per_node == 0
    kit = hpcgen.render(plan).files
    assert "NGraph using backend: CPU" in kit["selftest.sh"].text
    assert "tf_step.py ngraph_bridge" in kit["job.pbs"].text
