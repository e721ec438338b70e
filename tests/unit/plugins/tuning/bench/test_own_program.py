"""A program of the user's in the place of a workload: its figure, its pairs, and what may vary."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench import run_rounds
from hpcgen.plugins.tuning.bench.comparison import compare
from hpcgen.plugins.tuning.bench.own_program import figure_in, own_workload
from hpcgen.plugins.tuning.bench.rows import rows_of
from hpcgen.plugins.tuning.bench.running import BenchOutcome
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import OwnProgram
from hpcgen.plugins.tuning.tune.space import space_for
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.starts import StartResult
from tests.conftest import GOLDEN, Command
from tests.unit.plugins.tuning.bench.test_running import case


@pytest.mark.parametrize(
    ("figure", "found"),
    [
        (r"images/s: ([0-9.]+)", 31.5),
        (r"[0-9.]+(?= s$)", 4.25),
        ("json:speed.steps", 7.0),
        ("json:speed", "nothing that it printed has the figure json:speed"),
        (r"loss ([a-z]+)", "nothing that it printed has the figure loss ([a-z]+)"),
        (r"gain (-?\d)", "its figure is -3, and has to be above 0"),
    ],
)
def test_the_last_number_counts(figure: str, found: float | str) -> None:
    lines = ["images/s: 12", "images/s: 31.5", "loss abc", '{"speed": {"steps": 7}}', "gain -3", "took 4.25 s", "end"]
    assert figure_in(OwnProgram(("true",), figure), lines) == found


def test_a_figure_has_to_be_a_regular_expression() -> None:
    with pytest.raises(InputError, match="no regular expression"):
        own_workload(["true"], "(")


@pytest.mark.parametrize(("lower", "verdict"), [(False, "faster"), (True, "slower")])
def test_variants_are_compared_in_pairs_by_the_figure(lower: bool, verdict: str) -> None:
    own = own_workload(["python3", "my train.py"], "it is ([0-9.]+)", lower)
    assert own.name.startswith("my-train.py-")
    seen: list[list[str]] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        seen.append(job.plan.job.command)
        threads = job.plan.job.threads_per_rank
        return StartResult(0, [f"it is {100.0 + len(seen) if threads == 2 else 50.0 + len(seen) / 10}"], 1.0)

    cells = [BenchOutcome(case(), own, Variant(threads=each), "pytorch") for each in (1, 2)]
    run_rounds(cells, rounds=4, starter=start)
    assert seen[0] == ["python3", "my train.py"]
    assert compare(cells)[1].verdict == verdict
    # No model could know what the figure is.
    assert not rows_of(cells[1], "2026-11-29", "hpcgen bench")


def test_a_program_that_is_told_nothing_varies_by_threads_and_variables_alone() -> None:
    own = own_workload(["./solver"])
    axes = space_for(case("mpi-hello", "supermuc"), own).axes
    assert {name for name in axes if not name.startswith("env.")} <= {"layout"}
    assert "env.GLIBC_TUNABLES" in axes and "env.OMP_PLACES" in axes
    cell = BenchOutcome(case(), own, Variant(allocator="tcmalloc"), "")
    run_rounds([cell], rounds=1, starter=lambda job, seconds: StartResult(0, [], 2.0))
    assert "is not told of allocator" in cell.reason
    cell = BenchOutcome(case(), own, Variant(), "")
    run_rounds([cell], rounds=1, starter=lambda job, seconds: StartResult(0, [], 2.0))
    assert cell.values == [0.5] and own.unit == "runs/s"


def test_options_of_a_program_go_together(hpcgen: Command, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(GOLDEN / "workstation" / "mpi-hello", tmp_path / "image/opt/hpcgen/kit")
    image = str(tmp_path / "image")
    for words, said in (
        (["bench", image, "--workload", "mlp", "--command", "true"], "--command takes the place of --workload"),
        (["bench", image, "--workload", "mlp", "--figure", "x"], "--figure and --lower require --command"),
        (["tune", image], "give --workload, or your own program by --command"),
        (["tune", image, "--command", "'"], '--command "\'" is not a command'),
    ):
        done = hpcgen(*words)
        assert done.returncode != 0 and said in done.stderr
