"""hpcgen test --nodes: the ranks of several nodes, by programs in the place of launcher and engine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.core.model.record import TestResult as Result
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.contract import collectives_tests, rank_tests
from hpcgen.running.verify.several import LaunchShape, command_of, fixed_launcher, networks, result_of, shape_of
from hpcgen.running.verify.starts import StartResult, with_layout
from tests.conftest import Command

replace = msgspec.structs.replace
LATENCY = RankTest(block="osu", name="latency", command="osu_latency", ranks="two", expect="Latency", figures="osu")
OSU = ("latency", "bandwidth", "latency within a node", "bandwidth within a node")
GPUS = RankTest(block="nccl_tests", name="all-reduce", command="x", ranks="per_gpu", device="/dev/nvidiactl")
PRINTED = ["hpcgen-rank: n1", "# OSU MPI Latency Test", "# Size  Latency (us)", "hpcgen-rank: n2", "8   1.5"]
OSU_ON_GPUS = {f"{what} between GPUs{where}" for what in ("latency", "bandwidth") for where in ("", " of a node")}


def ended(*lines: str, status: int | None = 0) -> StartResult:
    return StartResult(status, list(lines), 2.0)


def test_a_test_that_passes_has_its_nodes_and_numbers() -> None:
    result = result_of(LATENCY, LaunchShape(2, 1, 4), ended(*PRINTED))
    assert (result.result, result.ranks, result.nodes) == ("passed", 2, ["n1", "n2"])
    assert [(each.name, each.value, each.at) for each in result.figures] == [("latency", 1.5, 8)]
    assert result.reason == "latency 1.5 us at 8 bytes; 2 ranks on n1, n2"
    assert "hpcgen-rank" not in result.output


@pytest.mark.parametrize(
    ("lines", "status", "why"),
    [
        (PRINTED[:3], 0, "1 of 2 ranks started"),
        ([line.replace("n2", "n1") for line in PRINTED], 0, "2 ranks started on n1, not on 2 nodes"),
        (PRINTED, 1, "the start ended with status 1"),
        (PRINTED, None, "it was ended after 2 s"),
        ([PRINTED[0], PRINTED[3]], 0, 'no "Latency" in the output'),
    ],
)
def test_what_does_not_hold_fails(lines: list[str], status: int | None, why: str) -> None:
    result = result_of(LATENCY, LaunchShape(2, 1, 4), ended(*lines, status=status))
    assert (result.result, result.reason) == ("failed", why)


def test_without_numbers_a_test_says_so() -> None:
    lines = ["hpcgen-rank: n1", "hpcgen-rank: n2", "# OSU MPI Latency Test"]
    assert result_of(LATENCY, LaunchShape(2, 1, 4), ended(*lines)).reason.startswith("no table of osu in its output")


def test_a_device_that_lacks_everywhere_skips_and_on_some_nodes_fails() -> None:
    lacks = result_of(GPUS, LaunchShape(2, 4, 1), ended("hpcgen-lacks: n1", "hpcgen-lacks: n2", status=77))
    assert (lacks.result, lacks.reason) == ("skipped", "no /dev/nvidiactl on n1, n2")
    some = result_of(GPUS, LaunchShape(2, 4, 1), ended("hpcgen-rank: n1", "hpcgen-lacks: n2", status=77))
    assert (some.result, some.reason) == ("failed", "no /dev/nvidiactl on n2")


def test_ranks_follow_what_the_test_asks_for() -> None:
    job = replace(plan().job, nodes=4, ranks_per_node=8, threads_per_rank=2, gpus_per_node=4)
    shapes = {
        kind: shape_of(replace(LATENCY, ranks=kind), job) for kind in ("two", "pair", "per_node", "per_gpu", "all")
    }
    assert shapes == {
        "two": LaunchShape(2, 1, 2),
        "pair": LaunchShape(1, 2, 2),
        "per_node": LaunchShape(4, 1, 2),
        "per_gpu": LaunchShape(4, 4, 4),
        "all": LaunchShape(4, 8, 2),
    }
    assert shape_of(GPUS, replace(job, gpus_per_node=0)) is None


def test_a_launcher_that_starts_the_whole_allocation_is_known() -> None:
    catalog = default_catalog()
    for name, fixed in (("frontera", "ibrun"), ("supermuc", "")):
        found = make_plan(catalog, catalog.site(name), catalog.stack("mpi-hello"), allow_unsupported=True)
        whole = with_layout(ImageJob(found, {}), [], 4, nodes=2)
        assert fixed_launcher(whole, with_layout(whole, ["x"], 1, nodes=2)) == fixed
        assert fixed_launcher(whole, with_layout(whole, ["x"], 4, nodes=2)) == ""


def test_a_rank_says_where_it_runs_before_it_begins() -> None:
    test = replace(GPUS, command="echo works", device="/dev/null")
    done = subprocess.run(command_of(test), capture_output=True, text=True)
    assert done.stdout == f"hpcgen-rank: {os.uname().nodename}\nworks\n"
    lacking = subprocess.run(command_of(replace(test, device="/dev/no such")), capture_output=True, text=True)
    assert (lacking.returncode, lacking.stdout) == (77, f"hpcgen-lacks: {os.uname().nodename}\n")


def plan(**more: Any) -> Any:
    catalog = default_catalog()
    return replace(make_plan(catalog, catalog.site("supermuc"), catalog.stack("net-test")), **more)


@pytest.mark.parametrize(
    ("stack", "site", "names"),
    [
        ("pytorch-ddp", "leonardo", {"data-parallel training"}),
        ("jax", "leonardo", {"training step over all ranks"}),
        ("deepspeed", "leonardo", {"data-parallel training", "ZeRO step over all ranks"}),
        ("mpi-python", "supermuc", {"all ranks"}),
        ("net-test-gpu", "leonardo", {"all-reduce", *OSU, *OSU_ON_GPUS, "allreduce", "HPL"}),
        ("mpi-hello", "supermuc", set()),
    ],
)
def test_kits_say_what_their_blocks_try_on_several_nodes(stack: str, site: str, names: set[str]) -> None:
    catalog = default_catalog()
    made = assemble(make_plan(catalog, catalog.site(site), catalog.stack(stack), allow_unsupported=True), catalog)
    assert {each.name for each in made.rank_tests} == names
    assert not any(f": {name}'" in made.selftest for name in names)


def test_a_rank_that_sees_one_gpu_takes_it(tmp_path: Path) -> None:
    catalog = default_catalog()
    made = assemble(make_plan(catalog, catalog.site("leonardo"), catalog.stack("net-test-gpu")), catalog)
    (sums,) = [each for each in made.rank_tests if each.block == "nccl_tests"]
    assert (sums.ranks, sums.device) == ("per_gpu", "/dev/nvidiactl")
    (tmp_path / "perf").write_text("#!/bin/sh\necho $NCCL_TESTS_DEVICE\n")
    (tmp_path / "perf").chmod(0o755)
    text = sums.command.replace("/opt/nccl_tests/bin/all_reduce_perf", str(tmp_path / "perf"))
    taken = {
        seen: subprocess.check_output(["sh", "-c", text], env={"CUDA_VISIBLE_DEVICES": seen}, text=True).strip()
        for seen in ("3", "0,1", "all")
    }
    assert taken == {"3": "0", "0,1": "", "all": ""}


def test_ranks_that_stay_on_one_node_break_the_contract() -> None:
    found = replace(plan(), job=replace(plan().job, nodes=2, ranks_per_node=1))
    lines = [f"rank {rank} of 2 on n1" for rank in range(2)]
    nodes = next(each for each in rank_tests(found, ended(*lines)) if each.name == "nodes")
    assert (nodes.result, nodes.reason) == ("failed", "ranks came up on n1, not on 2 nodes")


def test_collectives_over_another_network_than_the_planned_one_fail() -> None:
    lines = ["a [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0", "via P2P/IPC"]
    assert networks(lines) == ["Socket"]
    catalog = default_catalog()
    site = catalog.site("leonardo")
    from hpcgen.core.model.job import JobRequest

    gpus = make_plan(catalog, site, catalog.stack("net-test-gpu"), job=JobRequest(nodes=2), allow_unsupported=True)

    def check(used: list[str] | None) -> Result:
        return collectives_tests(gpus, used)[0]

    assert (check(["IB"]).result, check(["IB"]).reason) == ("passed", "IB")
    assert check(["Socket"]).result == "failed" and "Socket is used, and IB" in check(["Socket"]).reason
    assert check(None).result == check([]).result == "skipped"
    assert collectives_tests(plan(), None)[0].result == "skipped"


def test_sockets_between_gpus_on_a_fast_fabric_fail_unless_the_stack_asks_for_them() -> None:
    """No plugin for EFA: nothing is known to bring the fabric's network, and NCCL says that it uses sockets."""
    from hpcgen.core.model.job import JobRequest

    catalog = default_catalog()
    found = make_plan(
        catalog,
        catalog.site("leonardo"),
        catalog.stack("net-test-gpu"),
        job=JobRequest(nodes=2),
        allow_unsupported=True,
    )
    fabric = replace(found.site.fabric, kind="efa")
    found = replace(found, site=replace(found.site, fabric=fabric))
    (slow,) = collectives_tests(found, ["Socket"])
    assert slow.result == "failed" and slow.reason == "NCCL goes over TCP sockets, although the nodes have efa"
    run = replace(found.stack.run, environment={"NCCL_NET": "Socket"})
    (asked,) = collectives_tests(replace(found, stack=replace(found.stack, run=run)), ["Socket"])
    assert (asked.result, asked.reason) == ("passed", "Socket, which the stack names (NCCL_NET)")
    ethernet = replace(found, site=replace(found.site, fabric=replace(fabric, kind="ethernet")))
    assert collectives_tests(ethernet, ["Socket"])[0].result == "passed"


# the command

ENGINE = """\
#!/bin/bash
[ "$1" != --version ] || { echo 0.31; exit; }
while [ "$1" != --lines ] && [[ "$1" != *rank_test ]] && [ "$1" != sh ] && [ "$1" != /bin/sh ]; do shift; done
case $1 in
--lines) echo "hpcgen-test: done" ;;
*rank_test) echo "rank $RANK of $SIZE on $NODE" ;;
*) exec "$@" ;;
esac
"""
MPIEXEC = """\
#!/bin/bash
# mpiexec -n N -ppn P COMMAND: the ranks one after the other, by nodes
size=$2 each=$4
shift 4
for ((rank = 0; rank < size; rank++)); do
    RANK=$rank SIZE=$size NODE=n$((rank / each + 1)) "$@" || exit
done
"""
PROGRAMS = {
    "ch-run": ENGINE,
    "mpiexec": MPIEXEC,
    "uname": '#!/bin/sh\necho "$NODE"\n',
    "osu": '#!/bin/sh\n[ "$RANK" != 0 ] || printf "# OSU MPI %s Test\\n# Size  Latency (us)\\n8  1.5\\n" "$1"\n',
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder with the kit of net-test, whose programs are those above."""
    kit = make_kit(plan(), default_catalog())
    place = tmp_path / "image" / "opt" / "hpcgen" / "kit"
    place.mkdir(parents=True)
    (tmp_path / "image" / "ch").mkdir()
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    for name, file in kit.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(file.text)
    facts = json.loads(kit.files["recipe.json"].text)
    assert [(each["name"], each["ranks"]) for each in facts["rank_tests"]] == [
        ("latency within a node", "pair"),
        ("bandwidth within a node", "pair"),
        ("latency", "two"),
        ("bandwidth", "two"),
        ("allreduce", "all"),
        ("HPL", "all"),
    ]
    for each in facts["rank_tests"]:
        each["command"] = f"osu {each['expect'].removeprefix('OSU MPI ').removesuffix(' Test')}"
    (place / "recipe.json").write_text(json.dumps(facts))
    return tmp_path / "image"


def called(hpcgen: Command, image: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    bash = "module() { :; }"
    (image.parent / "env").write_text(bash)
    env = {"PATH": f"{image.parent / 'bin'}:{os.environ['PATH']}", "BASH_ENV": str(image.parent / "env")}
    env |= {"HPCGEN_RECORDS": str(image.parent / "records"), **more}
    return hpcgen("test", str(image), *words, env=env)


def test_blocks_are_tried_over_the_nodes_of_an_allocation(hpcgen: Command, image: Path) -> None:
    done = called(hpcgen, image, "--nodes", "3", "--ranks-per-node", "2", "--json", SLURM_JOB_ID="7")
    run = json.loads(done.stdout)
    results = {each["name"]: each for each in run["results"]}
    assert run["nodes"] == 3
    assert results["latency"]["nodes"] == ["n1", "n2"], done.stdout + done.stderr
    assert results["latency"]["figures"] == [
        {"name": "latency", "value": 1.5, "unit": "us", "at": 8, "at_unit": "bytes"}
    ]
    assert (results["allreduce"]["ranks"], results["allreduce"]["nodes"]) == (6, ["n1", "n2", "n3"])
    assert results["HPL"]["reason"] == "no table of hpl in its output; 6 ranks on n1, n2, n3"
    assert (results["ranks"]["reason"], results["nodes"]["reason"]) == ("6 of 6", "n1, n2, n3")


def test_what_was_recorded_judges_the_next_run(hpcgen: Command, image: Path) -> None:
    words = ("--nodes", "2", "--ranks-per-node", "1", "--json")
    file = image.parent / "mine.yaml"
    refused = called(hpcgen, image, "--record", str(file), SLURM_JOB_ID="7")
    assert refused.returncode == 2 and "--record requires --nodes 2 or more" in refused.stderr
    first = called(hpcgen, image, *words, "--record", str(file), SLURM_JOB_ID="7")
    results = {each["name"]: each for each in json.loads(first.stdout)["results"]}
    assert results["latency"]["judgement"]["result"] == "unknown"
    assert "value: 1.5\n" in file.read_text(), first.stderr
    again = called(hpcgen, image, *words, "--record", str(file), SLURM_JOB_ID="7")
    assert again.returncode == 7 and "already exists" in again.stderr

    def latency() -> dict[str, Any]:
        done = called(hpcgen, image, *words, "--site", str(file), SLURM_JOB_ID="7")
        assert "results" in done.stdout, done.stdout + done.stderr
        results = {each["name"]: each for each in json.loads(done.stdout)["results"]}
        return {**results["latency"], "stderr": done.stderr}

    assert latency()["judgement"]["result"] == "good"
    file.write_text(file.read_text().replace("value: 1.5\n", "value: 0.5\n"))
    slow = latency()
    judgement = slow["judgement"]
    assert (slow["result"], judgement["measured"], judgement["expected"], judgement["starts"]) == (
        "failed",
        1.5,
        0.5,
        3,
    )
    assert judgement["source"].startswith("measured by hpcgen test of ") and judgement["causes"]
    assert (
        "osu: latency: latency is 1.5 us at 8 bytes, the best of 3 starts, expected 0.5 (at most 0.75)"
        in slow["stderr"]
    )


def test_on_one_node_none_of_it_is_started(hpcgen: Command, image: Path) -> None:
    done = called(hpcgen, image, "--json", SLURM_JOB_ID="7")
    names = {each["name"] for each in json.loads(done.stdout)["results"]}
    assert "ranks" in names and not names & {"nodes", "latency", "HPL", "collectives"}


def test_without_an_allocation_it_is_said_how_to_get_one(hpcgen: Command, image: Path) -> None:
    done = called(hpcgen, image, "--nodes", "2", SLURM_JOB_ID="", PBS_JOBID="")
    assert done.returncode == 6
    assert "2 nodes require an allocation" in done.stderr
    assert "hpcgen test --submit, or hpcgen test inside: salloc -J net-test --time=" in done.stderr
    assert " --nodes=2 " in done.stderr and "--account=YOUR-ACCOUNT" in done.stderr
    # Options of its sbatch that salloc refuses.
    assert "--export" not in done.stderr and "--no-requeue" not in done.stderr


def test_the_same_command_is_a_job_with_submit(hpcgen: Command, image: Path, tmp_path: Path) -> None:
    """By a batch system that starts the script at once."""
    programs = {"sbatch": '#!/bin/sh\nfor script; do :; done\ncp "$script" asked\necho 7\n', "scontrol": "#!/bin/sh\n"}
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    words = ("--nodes", "2", "--ranks-per-node", "2", "--json")
    refused = called(hpcgen, image, *words, "--no-follow")
    assert refused.returncode == 2 and "--no-follow requires --submit" in refused.stderr
    refused = called(hpcgen, image, *words, "--submit")
    assert refused.returncode == 6 and "requires an account" in refused.stderr
    (tmp_path / "work").mkdir()
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "BASH_ENV": str(tmp_path / "env")}
    more = ("--submit", "--no-follow", "--account", "abc", "--time", "20m")
    done = hpcgen("test", str(image), *words, *more, env=env, cwd=tmp_path / "work")
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    script = tmp_path / "work" / ".hpcgen/jobs/test-net-test-1/job.slurm"
    text = script.read_text()
    for option in ("--nodes=2", "--ntasks-per-node=2", "--account=abc", "--time=00:20:00"):
        assert f"#SBATCH {option}\n" in text
    env |= {"SLURM_JOB_ID": "7", "HPCGEN_RECORDS": str(tmp_path / "records")}
    job = subprocess.run(["bash", script], env={**os.environ, **env}, capture_output=True, text=True)
    results = {each["name"]: each for each in json.loads(job.stdout)["results"]}
    assert results["allreduce"]["nodes"] == ["n1", "n2"], job.stdout + job.stderr
