"""R from the distribution, and Julia's own binaries."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hpcgen.core.errors import ConflictError
from hpcgen.core.model.nodes import Cpu
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, newest, text


def test_packages_of_r_are_those_of_the_distribution() -> None:
    block, ctx = context("r", "4.2.2", packages=["MASS", "data.table", "DESeq2", "MASS"])
    names = ["r-base-core", "libopenblas0-pthread", "r-bioc-deseq2", "r-cran-data.table", "r-cran-mass"]
    assert block.packages(ctx).build == block.packages(ctx).run == {"apt": names}
    loads = block.test(ctx)[-1]
    assert loads.command.endswith("DESeq2 MASS data.table") and loads.expect == "all loaded"


def test_a_package_that_the_distribution_lacks_is_refused_with_another_way() -> None:
    block, ctx = context("r", "4.5.0", packages=["notthere"])
    with pytest.raises(ConflictError) as refused:
        block.packages(ctx)
    assert "no package notthere" in str(refused.value)
    block, ctx = context("r", "4.5.0", packages=["dplr"])
    with pytest.raises(ConflictError) as refused:
        block.packages(ctx)
    assert "dplyr" in str(refused.value)


@pytest.mark.parametrize("version", sorted(CATALOG.releases("julia")))
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_julia_is_the_binary_of_the_architecture(version: str, architecture: str) -> None:
    block, ctx = context("julia", version, facts(architecture=architecture))
    (archive,) = block.inputs(ctx)
    assert archive.url.endswith(f"julia-{version}-linux-{architecture}.tar.gz")
    both = block.environment(ctx).both
    assert both["JULIA_DEPOT_PATH"] == "~/.julia:/opt/julia/depot:" and "JULIA_LOAD_PATH" not in both
    assert block.runtime(ctx).copies == ("/opt/julia",) and "mkdir -p /opt/julia/depot" in text(block.build(ctx))


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("zen3", "znver3"),
        ("skylake_avx512", "skylake-avx512"),
        ("x86_64_v3", "x86-64-v3"),
        ("neoverse_v2", "generic"),
    ],
)
def test_code_is_compiled_for_the_partitions_cpus(cpu: str, expected: str) -> None:
    architecture = "aarch64" if cpu.startswith("neoverse") else "x86_64"
    here = facts(architecture=architecture)
    here = replace(here, partition=replace(here.partition, cpu=Cpu(target=cpu, cores=64)))
    block, ctx = context("julia", "1.10.10", here)
    assert block.environment(ctx).both["JULIA_CPU_TARGET"] == expected


@pytest.mark.parametrize(("mpi", "abi"), [("mpich", "MPICH"), ("intel_mpi", "MPICH"), ("openmpi", "OpenMPI")])
def test_julias_mpi_is_that_of_the_image(mpi: str, abi: str) -> None:
    block, ctx = context("julia", "1.10.10", others={"mpi": chosen(mpi, newest(mpi))}, mpi=True)
    written = text(block.build(ctx))
    assert f'abi = "{abi}"' in written and 'binary = "system"' in written
    assert block.environment(ctx).both["JULIA_LOAD_PATH"] == ":/opt/julia/environment"
