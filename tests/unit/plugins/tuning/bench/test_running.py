"""Rounds over images that are not there: a starter that is made up stands for them."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hpcgen.api import default_catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.planning.memory import DECIDES
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.tuning.bench.comparison import NO_DIFFERENCE, compare, over_workloads
from hpcgen.plugins.tuning.bench.own_program import own_workload
from hpcgen.plugins.tuning.bench.program import MARK
from hpcgen.plugins.tuning.bench.rows import rows_of
from hpcgen.plugins.tuning.bench.running import BenchCase, BenchOutcome, outcomes_for, run_rounds, run_variants
from hpcgen.plugins.tuning.bench.variants import KEEPING, Variant, of_memory, parse_variants
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.cli.bench_report import best_so_far, data, report
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.recipe.assemble import assemble
from hpcgen.running.foreign import bare, foreign_plan
from hpcgen.running.image_job import ImageJob, direct_script
from hpcgen.running.verify.starts import StartResult, start_job, with_layout

Starter = Callable[[ImageJob, float], StartResult]


def case(stack: str = "pytorch", site: str = "workstation", nodes: int = 1) -> BenchCase:
    catalog = default_catalog()
    asked = JobRequest(nodes=nodes) if nodes > 1 else None
    plan = make_plan(catalog, catalog.site(site), catalog.stack(stack), job=asked, allow_unsupported=True)
    return BenchCase("image", ImageJob(plan, {}, "/images/image", "directory"), "ab12")


def starter(
    rate: Callable[[dict[str, Any]], float | str], overhead: float = 1.5, readers: list[str] | None = None
) -> Starter:
    """Every rank says a rate that follows from what is asked, or that it cannot."""

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        asked = json.loads(job.plan.job.command[-1])
        found = rate(asked)
        known = workload_named({"resnet50": "resnet50"}.get(asked["workload"], asked["workload"])).record.parameters
        said: dict[str, Any] = {"cannot": found}
        if not isinstance(found, str):
            said = {"rate": found, "step_seconds": 1.0, "steps": 3, "overhead": overhead, "version": "2.13.0"}
            said |= {"parameters": known, "readers": readers, "memory": 1_500_000_000}
            said["library"] = f"/usr/lib/lib{asked['allocator']}.so" if asked["allocator"] else None
        nodes = [f"n{rank // job.plan.job.ranks_per_node + 1}" for rank in range(asked["ranks"])]
        lines = [f"{MARK} {json.dumps(said if 'cannot' in said else {**said, 'node': node})}" for node in nodes]
        return StartResult(0, ["begins", *lines], 1.0)

    return start


def test_what_keeps_memory_is_what_the_blocks_set() -> None:
    plan = case().job.plan
    environment = assemble(plan, default_catalog()).final.environment
    assert of_memory(environment) == {name: environment[name] for name in environment if name.startswith(DECIDES)}
    assert {*KEEPING, "GLIBC_TUNABLES", "THP_MEM_ALLOC_ENABLE"} == of_memory(environment).keys()


def test_plain_memory_takes_away_what_the_image_sets_and_the_rows_say_so() -> None:
    """An empty value in its place would be a threshold of 0, with which every piece is mapped anew."""
    plain = case()
    kept = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32), "GLIBC_TUNABLES": "x=1"}
    image = replace(plain, job=replace(plain.job, environment=kept))
    own = {"MALLOC_TRIM_THRESHOLD_": "1"}
    variants = [Variant(), Variant(memory="plain"), Variant(memory="plain", environment=own)]
    commands: list[list[str]] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        commands.append(job.plan.job.command)
        return starter(lambda asked: 100.0)(job, timeout_s)

    cells = run_variants([image, plain], [workload_named("mlp")], variants, rounds=1, starter=start)
    first = ["env", "-u", "MALLOC_MMAP_THRESHOLD_"]
    assert commands[1][:5] == [*first, "-u", "MALLOC_TRIM_THRESHOLD_"] and commands[1][5:] == commands[0]
    assert commands[2][:3] == first and commands[2][3] == "python3"
    assert all(command[0] == "python3" for command in commands[3:])
    rows = [rows_of(cell, "2026-11-29", "hpcgen bench")[0].software.environment for cell in cells]
    assert rows[:2] == [{}, {"MALLOC_MMAP_THRESHOLD_": "", "MALLOC_TRIM_THRESHOLD_": ""}]
    assert rows[2] == {"MALLOC_MMAP_THRESHOLD_": "", **own} and rows[4] == {}


def test_without_a_container_the_program_alone_has_what_its_loader_reads() -> None:
    """They were dropped in silence, so variants of them were the baseline once more."""
    plan = foreign_plan(bare(default_catalog().site("workstation")), None)
    kept = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
    plan = replace(plan, stack=replace(plan.stack, run=replace(plan.stack.run, environment=kept)))
    words = ["sh", "-c", "echo ${MALLOC_MMAP_THRESHOLD_:-1} ${GLIBC_TUNABLES:-none}"]
    plain = BenchCase("here", with_layout(ImageJob(plan, {}, plain=True), [], 1), command=tuple(words))
    huge = Variant(memory="plain", environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"})
    told: list[list[str]] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        ended = start_job(job, timeout_s)
        told.append(list(ended.lines))
        return ended

    own = own_workload(words, "^[0-9]+")
    cells = run_variants([plain], [own], [Variant(), Variant(memory="plain"), huge], rounds=1, starter=start)
    assert told == [["1073741824 none"], ["1 none"], ["1 glibc.malloc.hugetlb=1"]]
    assert [cell.values for cell in cells] == [[1073741824.0], [1.0], [1.0]]


def test_rounds_rotate_and_are_compared_in_pairs() -> None:
    order: list[str] = []

    def begins(outcome: BenchOutcome, number: int) -> None:
        order.append(f"{number}{outcome.variant.threads}")

    speeds = {1: 100.0, 2: 190.0, 3: 101.0}
    noise = iter([1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 1.02, 1.0, 0.98])
    found = run_variants(
        [case()],
        [workload_named("mnist-cnn")],
        parse_variants(["threads=1,2,3"]),
        rounds=3,
        on_begin=begins,
        starter=starter(lambda asked: speeds[asked["threads"]] * next(noise)),
    )
    assert order == ["01", "02", "03", "12", "13", "11", "23", "21", "22"]
    first, second, third = compare(found)
    assert first.first and first.ratio is None
    assert second.ratio is not None and second.ratio.value == pytest.approx(1.9, rel=0.1)
    assert (second.verdict, third.verdict) == ("faster", NO_DIFFERENCE)


def test_rounds_that_others_disturbed_are_run_again_and_the_quieter_counts() -> None:
    looks = iter([0.0, 0.0, 0.9, 0.0, 0.5, 0.0, 0.0, 0.0, 0.6, 0.0])
    speeds = iter([10.0, 20.0, 3.0, 20.0, 10.0, 4.0, 10.0, 20.0, 5.0, 5.0])
    found = run_variants(
        [case()],
        [workload_named("mlp")],
        parse_variants(["threads=1,2"]),
        rounds=3,
        starter=starter(lambda asked: next(speeds)),
        look=lambda: next(looks),
        repeat=2,
    )
    # The second round was repeated without others, the third with more of them than before, so it stays as it was.
    assert next(looks, None) is None and [each.values for each in found] == [[10, 20, 10], [20, 10, 4]]
    assert "before 1 of 6 starts, at most 50% of the time; load" in report(compare(found), io.StringIO())


def test_workloads_are_summed_up_by_the_geometric_mean() -> None:
    gains = {"gemm": 2.0, "stream": 0.5, "fft": 8.0}
    noise = iter([1.0, 1.02, 0.99, 1.01] * 9)
    found = run_variants(
        [case("jax"), msgspec.structs.replace(case("jax"), image="other")],
        [workload_named(name) for name in gains],
        parse_variants(["framework=numpy"]),
        rounds=3,
        starter=starter(lambda asked: next(noise)),
    )
    for each in found:
        if each.case.image == "other":
            gain = gains[each.workload.name]
            each.rates = {n: msgspec.structs.replace(r, value=r.value * gain) for n, r in each.rates.items()}
    ((key, mean),) = over_workloads(compare(found)).items()
    assert key == ("other", "framework=numpy") and mean.value == pytest.approx(2.0, rel=0.02)
    assert mean.low is not None and mean.high is not None and 1.9 < mean.low < mean.value < mean.high < 2.1
    assert "over all workloads" in report(compare(found), io.StringIO())


def test_what_cannot_run_has_a_reason_and_is_tried_once() -> None:
    tried: list[str] = []

    def rate(asked: dict[str, Any]) -> float | str:
        tried.append(asked["compiler"])
        return "there is no C++ compiler" if asked["compiler"] == "torch.compile" else 10.0

    variants = parse_variants(["compiler=torch.compile,none"])
    found = run_variants([case()], [workload_named("mlp")], variants, rounds=2, starter=starter(rate))
    assert tried == ["torch.compile", "none", "none"]
    refused, ran = compare(found)
    assert refused.verdict == "there is no C++ compiler" and ran.first
    assert rows_of(found[0], "2026-11-23", "") == []


@pytest.mark.parametrize(
    ("workload", "variant", "reason"),
    [
        ("mlp", Variant(framework="numpy"), "no program for it with numpy, only with pytorch, tensorflow, jax"),
        ("mlp", Variant(framework="tensorflow"), "the image has no tensorflow"),
        ("gemm", Variant(batch=3), "it has no batch"),
        ("allreduce", Variant(), "it needs 2 ranks: --layout 2x1"),
        ("mlp", Variant(ranks=2, threads=1), "2 ranks of pytorch, which has no MPI to start them"),
        ("gemm", Variant(environment={"A": "\x07"}), "U+0007"),
    ],
)
def test_what_is_known_without_a_start(workload: str, variant: Variant, reason: str) -> None:
    def start(job: ImageJob, timeout_s: float) -> StartResult:
        direct_script(job)
        raise AssertionError("started")

    (found,) = run_variants([case()], [workload_named(workload)], [variant], starter=start)
    assert reason in found.reason and not found.rates


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (StartResult(None, [], 900.0), "it was ended after 7 s"),
        (StartResult(-9, ["a", "", "b"], 1.0), "it ended with the signal SIGKILL: a | b"),
        (StartResult(0, ["no torch"], 1.0), "0 of 1 rank said how fast they were; the last lines: no torch"),
        (StartResult(0, [f"{MARK} {{"], 1.0), "damaged"),
    ],
)
def test_a_start_that_says_nothing(ended: StartResult, reason: str) -> None:
    (found,) = run_variants(
        [case()], [workload_named("gemm")], [Variant()], timeout_s=7, starter=lambda job, limit: ended
    )
    assert reason in found.reason


def test_another_network_is_no_result() -> None:
    line = '{"rate": 3, "step_seconds": 1, "steps": 3, "overhead": 0, "version": "2", "parameters": 7, '
    line += '"memory": 1, "node": "n1"}'
    ended = StartResult(0, [f"{MARK} {line}"], 1.0)
    (found,) = run_variants([case()], [workload_named("mlp")], [Variant()], starter=lambda job, limit: ended)
    assert "another network" in found.reason and "29540618" in found.reason


@pytest.mark.parametrize(("stack", "framework"), [("pytorch-ddp", "pytorch"), ("jax", "jax")])
def test_the_launch_line_has_layout_variables_and_program(stack: str, framework: str) -> None:
    lines: list[str] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        lines.extend(direct_script(job).splitlines())
        return StartResult(1, [], 1.0)

    variant = Variant(ranks=2, threads=3, environment={"KMP_BLOCKTIME": "0"})
    (found,) = run_variants([case(stack)], [workload_named("mlp")], [variant], starter=start)
    assert found.framework == framework
    text = "\n".join(lines)
    assert "export OMP_NUM_THREADS=3" in text and "export KMP_BLOCKTIME=0" in text
    (command,) = [line for line in lines if "ranks.py" in line]
    words = shlex.split(command)
    at = words.index(f"/opt/{framework}/share/ranks.py")
    assert words[at + 1 : at + 3] == ["python3", "-c"]
    assert json.loads(words[at + 4].rstrip(")"))["ranks"] == 2


def test_rates_of_ranks_add_up_but_not_those_of_a_sum_over_ranks() -> None:
    cases, layout = [case("mpi-python")], parse_variants([], ["2x1"])
    (summed,) = run_variants(cases, [workload_named("allreduce")], layout, rounds=1, starter=starter(lambda _: 3.0))
    assert summed.values == [3.0]
    (added,) = run_variants(
        [case("pytorch-ddp")], [workload_named("mlp")], layout, rounds=1, starter=starter(lambda _: 3.0)
    )
    assert added.values == [6.0]


def test_ranks_of_several_nodes_are_measured_together() -> None:
    lines: list[str] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        lines.extend(direct_script(job).splitlines())
        return starter(lambda _: 3.0)(job, timeout_s)

    cases, layout = [case("pytorch-ddp", "supermuc", nodes=2)], parse_variants([], ["2x1"])
    (found,) = run_variants(cases, [workload_named("mlp")], layout, rounds=1, starter=start)
    assert any("mpiexec" in line and "-n 4" in line for line in lines), "\n".join(lines)
    rows = {row.metric: row for row in rows_of(found, "2026-11-23", "")}
    speed = rows["samples_per_second"]
    assert (speed.value, speed.nodes, speed.ranks_per_node, speed.software.mpi) == (12.0, 2, 2, "host")
    assert rows["memory_gb"].value == 3.0  # of one node
    # One rank of each is enough for a sum over ranks.
    one = parse_variants([], ["1x1"])
    (found,) = run_variants(cases, [workload_named("allreduce")], one, rounds=1, starter=starter(lambda _: 3.0))
    assert found.values == [3.0]


def test_ranks_that_ran_on_other_nodes_are_no_result() -> None:
    def start(job: ImageJob, timeout_s: float) -> StartResult:
        ended = starter(lambda _: 3.0)(job, timeout_s)
        return StartResult(0, [line.replace('"n2"', '"n1"') for line in ended.lines], 1.0)

    cases = [case("pytorch-ddp", "supermuc", nodes=2)]
    (found,) = run_variants(cases, [workload_named("mlp")], [Variant(ranks=2, threads=1)], starter=start)
    assert found.reason == "4 ranks ran on n1, not on 2 nodes"


def test_a_launcher_that_starts_what_the_allocation_has_is_not_measured_with_less() -> None:
    whole = case("mpi-python", "frontera", nodes=2)
    (found,) = run_variants([whole], [workload_named("allreduce")], [Variant(ranks=3)], starter=starter(lambda _: 3.0))
    assert found.reason == "ibrun always starts all ranks of the allocation"


def test_measurements_say_what_was_run_where() -> None:
    variants = parse_variants(["batch=16", "precision=bf16", "interop=2", "env.KMP_BLOCKTIME=0"])
    rates = iter([90.0, 100.0, 112.0])
    (found,) = run_variants(
        [case()], [workload_named("mnist-cnn")], variants, rounds=3, starter=starter(lambda _: next(rates))
    )
    speed, memory, overhead = rows_of(found, "2026-11-23", "hpcgen bench image")
    assert isinstance(speed, Measurement)
    assert (speed.metric, speed.value, speed.repetitions) == ("samples_per_second", 100.0, 3)
    assert speed.low is not None and speed.high is not None and speed.low < 100 < speed.high
    assert (speed.workload.batch, speed.workload.precision, speed.interop_threads) == (16, "bf16", 2)
    software, hardware = speed.software, speed.hardware
    assert (software.framework, software.version, software.stack, software.content) == (
        "pytorch",
        "2.13.0",
        "pytorch",
        "ab12",
    )
    assert software.environment == {"KMP_BLOCKTIME": "0"} and software.blocks["pytorch"]
    assert (hardware.site, hardware.name) == ("workstation", f"workstation-{hardware.partition}")
    assert (memory.metric, memory.value, memory.low, memory.high) == ("memory_gb", 1.5, 1.5, 1.5)
    assert (overhead.metric, overhead.value) == ("first_epoch_overhead", 1.5)
    assert speed.measured == "2026-11-23"


def test_after_an_interrupt_the_outcomes_have_what_is_known() -> None:
    count = iter(range(10))

    def rate(asked: dict[str, Any]) -> float:
        if next(count) == 3:
            raise KeyboardInterrupt
        return 5.0

    outcomes = outcomes_for([case()], [workload_named("gemm")], parse_variants(["threads=1,2"]))
    with pytest.raises(KeyboardInterrupt):
        run_rounds(outcomes, rounds=3, starter=starter(rate))
    assert [len(each.rates) for each in outcomes] == [1, 2]
    assert [len(rows_of(each, "2026-11-23", "")) for each in outcomes] == [3, 3]
    assert best_so_far(outcomes, workload_named("gemm")).startswith("; best so far threads=1, 5 GFLOP/s")


def test_the_table_has_ratio_interval_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    rates = {1: iter([10.0, 20.0, 15.0]), 2: iter([20.0, 41.0, 30.0])}
    found = run_variants(
        [case()],
        [workload_named("gemm")],
        parse_variants(["threads=1,2"]),
        rounds=3,
        starter=starter(lambda asked: next(rates[asked["threads"]])),
    )
    text = report(compare(found), sys.stdout)
    assert "threads=2  pytorch  30 GFLOP/s" in text and "2.017  1.946 to 2.089  1.5 GB  faster" in text
    assert "of GPUs" not in text
    second = data(compare(found))[1]
    assert (second["rates"], second["memory_gb"]) == ([20.0, 41.0, 30.0], [1.5, 1.5, 1.5])


def test_memory_of_a_nodes_ranks_adds_up_and_that_of_gpus_is_told_apart() -> None:
    import sys

    def with_gpu(job: ImageJob, timeout_s: float) -> StartResult:
        ended = starter(lambda _: 3.0)(job, timeout_s)
        return StartResult(
            0, [line.replace('"node"', '"device_memory": 700000000, "node"') for line in ended.lines], 1.0
        )

    layout = parse_variants([], ["2x1"])
    (found,) = run_variants([case("pytorch-ddp")], [workload_named("mlp")], layout, rounds=2, starter=with_gpu)
    rows = {row.metric: row.value for row in rows_of(found, "2026-11-23", "")}
    assert (rows["memory_gb"], rows["device_memory_gb"]) == (3.0, 1.4)
    text = report(compare([found]), sys.stdout)
    assert "of GPUs" in text and "3 GB" in text and "1.4 GB" in text
