"""What each rank of a node sees and where it runs: the function of the job script, run by a real bash."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import Any

import msgspec
import pytest

from hpcgen.backends.engines import engine_for
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.site import Site
from hpcgen.core.support.cpu_lists import list_text
from hpcgen.launch.binding import cpus_of, shares_of
from hpcgen.launch.script import job_script
from hpcgen.launch.start import start
from tests.unit.launch.test_launch import container, last, make_plan, site

replace = msgspec.structs.replace
SHOW = [
    "sh",
    "-c",
    'echo "$CUDA_VISIBLE_DEVICES|$ROCR_VISIBLE_DEVICES|$(sed -n "s/^Cpus_allowed_list:.//p" /proc/$$/status)|$*"',
    "sh",
]


def with_gpus(
    name: str = "supermuc", count: int = 4, vendor: Any = "nvidia", cpus: list[str] | None = None, **batch: Any
) -> Site:
    profile = site(name)
    gpu = Gpu(vendor=vendor, model="demo", count=count, cpus=cpus or [])
    partition = replace(profile.partitions[profile.default_partition], gpu=gpu)
    assert profile.mpi is not None
    return replace(
        profile,
        partitions={profile.default_partition: partition},
        layouts=[],
        scheduler=replace(profile.scheduler, **batch),
        mpi=replace(profile.mpi, launcher="srun", pmi=["pmi2"]),
    )


def script(the_site: Site | str, **given: Any) -> str:
    return job_script(make_plan(the_site, **given), {"PATH": "/usr/bin"})[1]


def run_rank(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One rank of a job script, without the container: what stands before its command, after the function."""
    function = re.search(r"^own_gpu\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    assert function is not None
    words = [line.strip() for line in text.splitlines() if line.strip().startswith("/bin/bash -c ")]
    shell = f"{function[0]}\n{words[0]} {shlex.join([*SHOW, 'a b', '$x'])}"
    env = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=env, check=False)


def test_ranks_share_the_gpus_of_a_node_in_their_order() -> None:
    assert shares_of(4, 4) == [[0], [1], [2], [3]]
    assert shares_of(2, 4) == [[0, 1], [2, 3]]
    assert shares_of(8, 4) == [[0], [0], [1], [1], [2], [2], [3], [3]]
    assert shares_of(3, 4) == [[0], [1], [2, 3]]
    assert shares_of(6, 4) == [[0], [0], [1], [2], [2], [3]]


def test_ranks_share_the_cpus_next_to_their_gpu() -> None:
    apart = ["4-7", "0-3"]
    assert cpus_of(shares_of(2, 2), apart, 4) == ["4-7", "0-3"]
    assert cpus_of(shares_of(4, 2), apart, 2) == ["4-5", "6-7", "0-1", "2-3"]
    together = ["0-7", "0-7", "8-15", "8-15"]
    assert cpus_of(shares_of(4, 4), together, 4) == ["0-3", "4-7", "8-11", "12-15"]
    assert cpus_of(shares_of(2, 4), together, 8) == ["0-7", "8-15"]
    assert cpus_of(shares_of(2, 2), apart, 8) == [], "more threads than CPUs: the launcher decides"
    assert cpus_of(shares_of(2, 2), [], 1) == []


def test_each_rank_sees_its_own_gpu() -> None:
    text = script(with_gpus())
    seen = [run_rank(text, SLURM_LOCALID=str(number)).stdout for number in range(4)]
    assert [line.split("|")[0] for line in seen] == ["0", "1", "2", "3"]
    assert all(line.endswith("|a b $x\n") for line in seen)
    assert "each rank sees its own, by CUDA_VISIBLE_DEVICES" in text


def test_of_the_gpus_that_the_batch_system_has_chosen() -> None:
    text = script(with_gpus(), ranks_per_node=2, gpus_per_node=2)
    for preset, expected in (("2,3", ["2", "3"]), ("GPU-a,GPU-b", ["GPU-a", "GPU-b"]), ("1", ["1", "1"])):
        ranks = [run_rank(text, SLURM_LOCALID=str(i), CUDA_VISIBLE_DEVICES=preset).stdout for i in range(2)]
        assert [line.split("|")[0] for line in ranks] == expected


def test_a_rank_of_several_gpus_sees_these() -> None:
    text = script(with_gpus(vendor="amd"), ranks_per_node=2)
    assert run_rank(text, SLURM_LOCALID="1").stdout.split("|")[:2] == ["", "2,3"]


@pytest.mark.parametrize("number", ["", "4", "all"])
def test_a_rank_without_a_number_does_not_take_the_first_gpu(number: str) -> None:
    done = run_rank(script(with_gpus()), SLURM_LOCALID=number)
    assert (done.returncode, done.stdout) == (78, "")
    assert f"SLURM_LOCALID is '{number}', and should be 0 to 3" in done.stderr


def test_each_rank_keeps_to_the_cpus_next_to_its_gpu() -> None:
    mine = min(os.sched_getaffinity(0))
    text = script(with_gpus(count=2, cpus=[str(mine), "60000"]), threads_per_rank=1, ranks_per_node=2)
    first, second = (run_rank(text, SLURM_LOCALID=str(number)) for number in range(2))
    assert first.stdout.split("|")[2] == str(mine)
    assert first.stderr == ""
    everywhere = list_text(os.sched_getaffinity(0))
    assert second.stdout.split("|")[2] == everywhere, "it runs all the same"
    assert f"own_gpu: rank 1 of {os.uname().nodename} was to keep to CPUs 60000, and has {everywhere}" in second.stderr


def test_cpus_are_bound_only_where_the_job_has_all_gpus() -> None:
    profile = with_gpus(count=2, cpus=["0-23", "24-47"])
    assert "cpus=24-47 " in script(profile)
    four = with_gpus(count=4, cpus=["0-11", "12-23", "24-35", "36-47"])
    assert "cpus=" not in script(four, gpus_per_node=2, ranks_per_node=2, threads_per_rank=1)


def test_intel_mpi_leaves_a_bound_rank_where_it_is() -> None:
    assert "export I_MPI_PIN=off\n" in script(with_gpus(count=2, cpus=["0-23", "24-47"]))
    assert "I_MPI_PIN=" not in script(with_gpus(count=2))


def test_the_launcher_gives_gpus_where_the_site_says_so() -> None:
    profile = with_gpus(gpu_bind="launcher")
    text = script(profile)
    assert "own_gpu" not in text
    assert " --gpus-per-task=1 " in last(text)
    assert "the launcher gives each rank its own" in text
    assert " --gpus-per-task=2 " in last(script(profile, ranks_per_node=2))
    crowded = script(profile, ranks_per_node=8)
    assert "--gpus-per-task" not in crowded, "a GPU is given to one rank alone"
    assert run_rank(crowded, SLURM_LOCALID="7").stdout.split("|")[0] == "3"


def test_a_program_that_chooses_sees_all() -> None:
    for text in (script(with_gpus(), rank_gpus="all"), script(with_gpus(gpu_bind="launcher"), rank_gpus="all")):
        assert "own_gpu" not in text and "--gpus-per-task" not in text
        assert "every rank sees the whole node and must choose by itself" in text
    kept = script(with_gpus(count=2, cpus=["0-23", "24-47"]), rank_gpus="all")
    assert "cpus=24-47 ;;" in kept and "VISIBLE" not in kept


@pytest.mark.parametrize(
    "given",
    [{"ranks_per_node": 1}, {"gpus_per_node": 0, "ranks_per_node": 4}, {"gpus_per_node": 1, "ranks_per_node": 2}],
)
def test_nothing_is_bound_where_nothing_is_shared(given: dict[str, int]) -> None:
    text = script(with_gpus(), **given)
    assert "own_gpu" not in text and "GPUs of a rank" not in text


def test_each_launcher_numbers_ranks_its_own_way() -> None:
    def number(profile: Site) -> str:
        found = re.search(r"case \$\{([A-Z0-9_]+):-\} in\n +0\) nth", script(profile))
        return found[1] if found else ""

    profile = with_gpus()
    assert profile.mpi is not None
    assert number(profile) == "SLURM_LOCALID"
    of_mpi = {"intel": "MPI_LOCALRANKID", "cray-mpich": "PALS_LOCAL_RANKID", "openmpi": "OMPI_COMM_WORLD_LOCAL_RANK"}
    for flavour, name in {**of_mpi, "parastation": ""}.items():
        mpi = replace(profile.mpi, flavour=flavour, launcher="mpiexec", abi="mpich")
        assert number(replace(profile, mpi=mpi)) == name, flavour
    mpi = replace(profile.mpi, flavour="parastation", launcher="mpiexec")
    assert "every rank sees all of the node: how this launcher" in script(replace(profile, mpi=mpi))


def test_the_images_own_launcher_binds_too() -> None:
    bare = site("workstation")
    gpu = Gpu(vendor="nvidia", model="demo", count=2)
    main = replace(bare.partitions[bare.default_partition], gpu=gpu)
    profile = replace(bare, partitions={bare.default_partition: main}, layouts=[])
    text = script(profile, mpi_block="mpich", ranks_per_node=2, threads_per_rank=1)
    words = container(text)
    assert words.index("mpiexec") < words.index("own_gpu")
    assert "case ${MPI_LOCALRANKID:-} in" in text


def test_engines_that_hide_the_hosts_variables_let_these_in() -> None:
    plan = make_plan(with_gpus("perlmutter"), "podman-hpc")
    words = start(plan, {}).engine.words(start(plan, {}).call)
    assert ["-e", "SLURM_LOCALID"] in words and ["-e", "CUDA_VISIBLE_DEVICES"] in words
    assert engine_for("podman-hpc", None).started_by_launcher
