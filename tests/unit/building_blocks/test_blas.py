"""OpenBLAS and MKL: which one a site gets, what it is compiled for, and what programs link."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hpcgen.blocks.base import Facts
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.nodes import Cpu
from hpcgen.planning.planner import make_plan
from tests.unit.building_blocks.test_system import chosen, context, facts, newest, text

CATALOG = Catalog()


def site(target: str, cores: int = 20, architecture: str = "x86_64") -> Facts:
    found = facts(architecture=architecture)
    partition = msgspec.structs.replace(found.partition, cpu=Cpu(target=target, cores=cores, threads_per_core=2))
    return msgspec.structs.replace(found, partition=partition)


def blas(name: str, version: str = "", here: Facts | None = None, **options: Any) -> Any:
    return context(name, version or newest(name), here, others={"gnu": chosen("gnu", "12.2.0")}, **options)


@pytest.mark.parametrize(
    ("target", "architecture", "first"),
    [
        ("sapphirerapids", "x86_64", "mkl"),
        ("zen3", "x86_64", "openblas"),
        ("x86_64_v3", "x86_64", "openblas"),
        ("neoverse_v2", "aarch64", "openblas"),
    ],
)
def test_mkl_is_for_intels_cpus(target: str, architecture: str, first: str) -> None:
    here = site(target, architecture=architecture)
    ranks = {name: CATALOG.block(name).preference(here) for name in ("openblas", "mkl")}
    known = {name: rank for name, rank in ranks.items() if rank is not None}
    assert min(known, key=lambda name: known[name]) == first
    assert ("mkl" in known) == (architecture == "x86_64")


@pytest.mark.parametrize(
    ("target", "kernels"),
    [
        ("skylake_avx512", "SKYLAKEX"),
        ("icelake", "SKYLAKEX"),
        ("sapphirerapids", "SAPPHIRERAPIDS"),
        ("zen3", "ZEN"),
        ("zen4", "SKYLAKEX"),
        ("neoverse_v2", "NEOVERSEV1"),
    ],
)
def test_openblas_is_compiled_with_the_kernels_of_the_cpu(target: str, kernels: str) -> None:
    block, ctx = blas("openblas", here=site(target))
    assert f" TARGET={kernels} " in text(block.build(ctx))
    assert any(test.expect == f"KERNELS FOR {kernels}" for test in block.test(ctx))


def test_openblas_for_a_cpu_without_kernels_of_its_own_chooses_them_at_run_time() -> None:
    block, ctx = blas("openblas", here=site("x86_64"))
    steps = text(block.build(ctx))
    assert "DYNAMIC_ARCH=1" in steps
    assert " TARGET=" not in steps


def test_openblas_is_not_limited_to_the_cores_of_the_building_machine() -> None:
    block, ctx = blas("openblas", here=site("zen3", cores=128))
    assert "NUM_THREADS=256" in text(block.build(ctx))


def test_openblas_does_not_run_its_own_tests_which_are_for_another_cpu() -> None:
    block, ctx = blas("openblas")
    (line,) = [line for line in text(block.build(ctx)).splitlines() if "libs netlib shared" in line]
    assert line.endswith("libs netlib shared")


def test_a_package_is_neither_fetched_nor_compiled() -> None:
    block, ctx = blas("openblas", "0.3.21", obtain="package")
    assert not block.inputs(ctx)
    assert not block.long_build(ctx)
    assert block.packages(ctx).run == {"apt": ["libopenblas0-openmp"]}
    assert "make" not in text(block.build(ctx)).split()


@pytest.mark.parametrize("name", ["openblas", "mkl"])
def test_each_provider_says_what_to_link_and_multiplies_matrices(name: str) -> None:
    block, ctx = blas(name)
    assert block.environment(ctx).build["BLAS_LIBS"].startswith(f"-L{ctx.prefix}/lib -l")
    assert "$BLAS_LIBS" in text(block.build(ctx))
    assert any(test.expect == "0 of 490000 numbers wrong" for test in block.test(ctx))


def test_mkl_has_the_openmp_of_the_compiler_and_no_other() -> None:
    block, ctx = blas("mkl")
    assert block.environment(ctx).both["MKL_THREADING_LAYER"] == "GNU"
    (wheels,) = block.inputs(ctx)
    assert sorted(line.split("==")[0] for line in wheels.requirements if "intel" in line or "tbb" in line) == []
    assert [licence.name for licence in block.capabilities(ctx).licences] == ["intel-simplified"]


@pytest.mark.parametrize("version", list(CATALOG.releases("mkl")))
def test_every_mkl_has_its_list_of_wheels(version: str) -> None:
    block, ctx = blas("mkl", version)
    assert all(wheels.hashed for wheels in block.inputs(ctx))


def test_an_old_ubuntu_has_no_mkl_and_gets_openblas(tmp_path: Any) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "it.yaml").write_text(
        "name: it\ntitle: t\nblocks: {blas: {}, ubuntu: {version: '18.04'}}\n"
        "run: {command: [/bin/true], mpi: false, gpus_per_node: 0}\n"
    )
    catalog = Catalog([tmp_path])
    plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack("it"))
    assert [block.name for block in plan.blocks if block.name in ("openblas", "mkl")] == ["openblas"]
