"""oneCCL from Intel's wheels, and Glow from its submodules."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgen.blocks.requirements import in_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.planning.planner import make_plan
from tests.unit.building_blocks.test_system import chosen, context, facts, newest, text


def oneccl(mpi: str = "mpich", architecture: str = "x86_64") -> Any:
    others = {"gnu": chosen("gnu", "12.2.0"), "mpi": chosen(mpi, newest(mpi))}
    return context("oneccl", newest("oneccl"), facts(architecture=architecture), others=others)


def test_oneccl_brings_no_mpi_of_its_own_and_the_sycl_that_it_is_linked_with() -> None:
    block, ctx = oneccl()
    (wheels,) = block.inputs(ctx)
    versions = dict(line.split(" ")[0].split("==") for line in wheels.requirements)
    assert wheels.hashed
    assert "impi-rt" not in versions
    assert versions["intel-sycl-rt"].startswith("2025.")


@pytest.mark.parametrize(("mpi", "architecture"), [("openmpi", "x86_64"), ("mpich", "aarch64")])
def test_oneccl_is_refused_where_it_cannot_work(mpi: str, architecture: str) -> None:
    block, ctx = oneccl(mpi, architecture)
    with pytest.raises(ConflictError):
        block.inputs(ctx)


def test_each_submodule_of_glow_has_its_folder() -> None:
    others = {"gnu": chosen("gnu", "8.4.0"), "llvm": chosen("llvm", "8.0.0")}
    block, ctx = context("glow", newest("glow"), base=("ubuntu", "18.04"), others=others)
    steps = text(block.build(ctx))
    for tree in ctx.release.trees.values():
        assert steps.count(tree.commit) >= 1, tree.url
    assert ctx.release.archives["fmt"].sha256 in steps
    assert "-DCMAKE_CXX_COMPILER=/usr/lib/llvm-8/bin/clang++" in steps


def test_glow_comes_with_a_pytorch_that_runs_on_its_old_base() -> None:
    catalog = Catalog()
    plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack("pytorch-glow"))
    chosen_versions = {block.name: block.version for block in plan.blocks}
    assert chosen_versions["ubuntu"] == "18.04"
    # From 2.6 on the wheels are for glibc 2.28.
    assert in_range(chosen_versions["pytorch"], "<2.6")
