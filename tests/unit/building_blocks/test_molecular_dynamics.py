"""GROMACS and LAMMPS: what they are compiled for, and that no GPU is left unused in silence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hpcgen.blocks.base import Block, Context, Facts
from hpcgen.blocks.capabilities import GpuUnused
from hpcgen.blocks.options import block_options
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import UnknownNameError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.nodes import Cpu, Gpu
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, newest, text

A100 = Gpu(vendor="nvidia", model="A100", capability="8.0")
BOTH = ["gromacs", "lammps"]


def site(target: str, gpu: Gpu | None = None, architecture: str = "x86_64") -> Facts:
    found = facts(gpu=gpu, architecture=architecture)
    partition = msgspec.structs.replace(found.partition, cpu=Cpu(target=target, cores=20))
    return msgspec.structs.replace(found, partition=partition)


def block(name: str, here: Facts | None = None, version: str = "", **options: Any) -> tuple[Block, Context]:
    others = {"gnu": chosen("gnu", "12.2.0"), "mpi": chosen("mpich", newest("mpich")), "cuda": chosen("cuda", "12.9.1")}
    return context(name, version or newest(name), here, others=others, **options)


@pytest.mark.parametrize(
    ("target", "architecture", "instructions"),
    [
        ("skylake_avx512", "x86_64", "AVX_512"),
        ("sapphirerapids", "x86_64", "AVX_512"),
        ("zen4", "x86_64", "AVX_512"),
        ("zen3", "x86_64", "AVX2_256"),
        ("zen", "x86_64", "AVX2_128"),
        ("broadwell", "x86_64", "AVX2_256"),
        ("x86_64", "x86_64", "SSE2"),
        ("neoverse_n1", "aarch64", "ARM_NEON_ASIMD"),
    ],
)
def test_gromacs_is_compiled_for_the_instructions_of_the_cpu(target: str, architecture: str, instructions: str) -> None:
    gromacs, ctx = block("gromacs", site(target, architecture=architecture))
    assert f" -DGMX_SIMD={instructions} " in text(gromacs.build(ctx))
    assert any(test.expect == f" {instructions}" for test in gromacs.test(ctx))


@pytest.mark.parametrize(("target", "bits"), [("a64fx", "512"), ("neoverse_v1", "256"), ("neoverse_v2", "128")])
def test_gromacs_knows_how_wide_sve_is(target: str, bits: str) -> None:
    gromacs, ctx = block("gromacs", site(target, architecture="aarch64"))
    steps = text(gromacs.build(ctx))
    assert " -DGMX_SIMD=ARM_SVE " in steps
    assert f" -DGMX_SIMD_ARM_SVE_LENGTH={bits}" in steps


@pytest.mark.parametrize("name", BOTH)
def test_a_gpu_is_used_where_it_can_be(name: str) -> None:
    where = lambda option: None  # noqa: E731
    for gpu, wanted in ((A100, "cuda"), (None, "none"), (Gpu(vendor="amd", model="MI250X", target="gfx90a"), "none")):
        here = site("zen3", gpu)
        assert block_options(CATALOG.block(name), here, {}, {}, where).options.gpu == wanted
    program, ctx = block(name, site("zen3", A100), gpu="cuda")
    steps = text(program.build(ctx))
    assert "-DGMX_CUDA_TARGET_SM=80" in steps or "-DGPU_ARCH=sm_80" in steps
    assert program.capabilities(ctx).gpu_vendors == ("nvidia",)


@pytest.mark.parametrize("name", BOTH)
def test_an_unused_gpu_is_refused_and_with_the_job_on_the_cpus_it_is_told(name: str) -> None:
    catalog = Catalog()
    with pytest.raises(Exception, match="the image cannot use them"):
        make_plan(catalog, catalog.site("lumi-g"), catalog.stack(name))
    plan = make_plan(catalog, catalog.site("lumi-g"), catalog.stack(name), job=JobRequest(gpus_per_node=0))
    assert any("computes on the CPU, not on" in note for note in notices(assemble(plan, catalog)))


@pytest.mark.parametrize("name", BOTH)
def test_nothing_of_the_building_machine_gets_into_it(name: str) -> None:
    program, ctx = block(name, site("zen3"))
    steps = text(program.build(ctx))
    assert "native" not in steps
    assert "-DGMX_USE_RDTSCP=ON" in steps or "-DCMAKE_TUNE_FLAGS=" in steps


def test_double_precision_is_for_the_cpu_alone_and_says_so() -> None:
    gromacs, ctx = block("gromacs", site("zen3", A100), gpu="cuda", double=True)
    assert "-DGMX_GPU=OFF" in text(gromacs.build(ctx))
    assert not gromacs.capabilities(ctx).gpu_vendors
    assert gromacs.capabilities(ctx).gpu_unused == GpuUnused("gromacs.double=true was requested")


def test_lammps_is_asked_for_the_release_by_its_date() -> None:
    lammps, ctx = block("lammps", version="20250722.6")
    assert any(test.expect == "Simulator - 22 Jul 2025" for test in lammps.test(ctx))


def test_the_crystal_melts_with_what_lammps_has() -> None:
    for options, line in (
        ({}, "suffix omp"),
        ({"gpu": "cuda"}, "suffix gpu"),
        ({"packages": ["KSPACE"]}, "suffix off"),
    ):
        lammps, ctx = block("lammps", site("zen3", A100), **options)
        assert line in text(lammps.build(ctx))


def test_a_package_of_lammps_has_the_form_of_one() -> None:
    where = lambda option: None  # noqa: E731
    with pytest.raises(UnknownNameError):
        block_options(CATALOG.block("lammps"), site("zen3"), {}, {"packages": "KSPACE,rm -rf"}, where)
