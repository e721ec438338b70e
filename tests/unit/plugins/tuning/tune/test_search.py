"""Searches with Optuna's own storage over images that are not there: a starter that is made up stands for them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpcgen.core.errors import InputError, JobFailedError
from hpcgen.plugins.tuning.bench.rows import rows_of
from hpcgen.plugins.tuning.bench.running import measure, run_variants
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.tune import Search, TuneStudy, cell_of, finalist, finalists, open_study, space_for
from hpcgen.plugins.tuning.tune.liveness import STALE_S, Worker, is_alive, this_worker
from hpcgen.plugins.tuning.tune.search import FINALISTS, hopeless
from hpcgen.plugins.tuning.tune.study import ATTEMPTS, Trial, impossible
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.starts import StartResult
from tests.conftest import ROOT
from tests.unit.plugins.tuning.bench.test_running import case, starter

Rates = Callable[[dict[str, Any]], float | str]
CASE = case()
MLP = workload_named("mlp")
VARY = ["interop=1,2,3", "allocator=jemalloc", "compiler=torch.compile"]
SPACE = space_for(
    CASE, MLP, [*VARY, "env.OMP_PROC_BIND=close", *(f"env.{n}=" for n in ("OMP_PLACES",))], ["1x1", "1x2"]
)
ABOUT = {"image": "ab12", "workload": "mlp"}


def speed(asked: dict[str, Any]) -> float:
    """Threads and one allocator help, and each thread between operations a little."""
    return 100.0 * asked["threads"] * (1.3 if asked["allocator"] else 1.0) + asked["interop"]


def study(path: Path, seed: int = 1, task: int = 0) -> TuneStudy:
    return open_study(path, ABOUT, SPACE, seed, task)


def search(study: TuneStudy, trials: int, rate: Rates = speed, rounds: int = 2, wait: bool = True) -> list[Trial]:
    Search(CASE, MLP, trials, rounds, 1.0, 60.0, starter=starter(rate)).run(study, wait)
    return study.trials()


def test_the_default_is_first_and_the_best_is_found_with_nothing_twice(tmp_path: Path) -> None:
    found = search(study(tmp_path / "study"), 30)
    assert found[0].settings == {} and found[0].state == "measured"
    settings = [each.settings for each in found]
    assert all(settings.count(each) == 1 for each in settings)
    best = study(tmp_path / "study").best()
    assert best is not None and best.settings["allocator"] == "jemalloc" and best.settings.get("layout") != "1x1"


def test_what_was_fastest_by_luck_is_found_out_and_what_changes_nothing_is_left_out(tmp_path: Path) -> None:
    found = study(tmp_path / "study")
    search(found, 40, lambda asked: speed(asked) * (2.0 if asked["interop"] == 3 and asked["allocator"] else 1.0))
    best = finalists(found)
    assert len(best) == FINALISTS + 1 and all(each["interop"] == "3" for each in best[:FINALISTS])
    assert "interop" not in best[-1] and best[-1]["allocator"] == "jemalloc"
    lucky = {"interop": "3"}
    again = [lucky, {**best[-1], **lucky}, best[-1]]
    assert finalist(CASE, MLP, again, (), 3, 1.0, 60.0, starter(speed)) == best[-1]


def test_one_seed_gives_one_sequence_also_when_it_is_gone_on_with(tmp_path: Path) -> None:
    whole = search(study(tmp_path / "whole"), 14)
    search(study(tmp_path / "parts"), 5)
    search(study(tmp_path / "parts"), 9)
    parts = search(study(tmp_path / "parts"), 14)
    assert [each.settings for each in parts] == [each.settings for each in whole]
    other = search(study(tmp_path / "other", seed=2), 14)
    assert [each.settings for each in other] != [each.settings for each in whole]
    task = search(study(tmp_path / "task", task=3), 14)
    assert [each.settings for each in task] != [each.settings for each in whole]


def test_another_image_that_is_faster_is_found_and_joined_with_what_helps(tmp_path: Path) -> None:
    fast = replace(CASE, image="fast.sif", job=replace(CASE.job, image="/images/fast.sif"))
    space = space_for(CASE, MLP, VARY, ["1x1"], [fast])

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        times = 2.0 if job.image == "/images/fast.sif" else 1.0
        return starter(lambda asked: times * speed(asked))(job, timeout_s)

    found = open_study(tmp_path / "study", ABOUT, space, 1)
    Search(CASE, MLP, 10, 2, 1.0, 60.0, starter=start, others=[fast]).run(found)
    assert found.trials()[1].settings == {"image": "fast.sif"}
    best = found.best()
    assert best is not None and best.settings["image"] == "fast.sif" and best.settings["allocator"] == "jemalloc"


def test_what_is_clearly_slow_ends_early_but_never_the_default(tmp_path: Path) -> None:
    def rate(asked: dict[str, Any]) -> float:
        return 10.0 if asked["allocator"] else 100.0 + asked["interop"]

    found = search(study(tmp_path / "study"), 16, rate, rounds=3)
    early = [each for each in found if each.state == "ended early"]
    assert early and all(len(each.rates) == 2 and "times the default in 2 pairs" in each.reason for each in early)
    assert all(each.settings["allocator"] == "jemalloc" for each in early)
    slow = search(study(tmp_path / "slow"), 12, lambda asked: 1.0 if not asked["interop"] else 100.0)
    assert slow[0].state == "measured"


def test_one_disturbed_pair_does_not_end_a_trial() -> None:
    assert hopeless([0.5], 0.9) == "" and hopeless([0.5, 0.95], 0.9) == ""
    assert hopeless([0.5, 0.8], 0.9) == "at most 0.80 times the default in 2 pairs"


def test_the_default_is_measured_again_beside_every_trial(tmp_path: Path) -> None:
    """The machine becomes 3.5 times as fast after the first start: the default is not taken for slow, or for fast."""
    starts = iter(range(1000))
    found = search(study(tmp_path / "study"), 8, lambda asked: speed(asked) * (3.5 if next(starts) else 1.0))
    for each in found[1:]:
        expected = speed({"threads": 1, "allocator": "", "interop": 0, **asked_of(each)}) / speed(asked_of(found[0]))
        assert each.ratio == pytest.approx(expected) and len(each.default) == len(each.rates)


def asked_of(trial: Trial) -> dict[str, Any]:
    """What its starts are asked, as far as speed depends on it."""
    seen: list[dict[str, Any]] = []
    measure(cell_of(CASE, MLP, trial.settings), 1.0, 60.0, starter(lambda asked: seen.append(asked) or 1.0))
    return seen[0]


def test_the_time_ends_a_start_and_its_trial_is_tried_again(tmp_path: Path) -> None:
    limits: list[float] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        limits.append(timeout_s)
        return starter(speed)(job, timeout_s) if len(limits) < 4 else StartResult(None, [], timeout_s)

    found = study(tmp_path / "study")
    Search(CASE, MLP, 9, 2, 1.0, 900.0, until=time.monotonic() + 50, starter=start).run(found)
    assert len(limits) == 4 and max(limits) <= 50
    ended = found.trials()[-1]
    assert (ended.state, ended.reason) == ("lost", "the time was up")
    assert [each.state for each in search(found, 2) if each.settings == ended.settings] == ["lost", "measured"]


def test_what_an_image_cannot_do_has_a_reason_and_is_soon_left_alone(tmp_path: Path) -> None:
    def rate(asked: dict[str, Any]) -> float | str:
        return "the image has no libjemalloc" if asked["allocator"] else 100.0

    found = search(study(tmp_path / "study"), 14, rate)
    refused = [each for each in found if each.state == "refused"]
    assert refused and {each.reason for each in refused} == {"the image has no libjemalloc"}
    assert sum(each.state in ("measured", "ended early") for each in found) == 14
    assert ("allocator", "jemalloc") in impossible(found)


def test_a_default_that_cannot_run_ends_the_search_and_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(JobFailedError, match="the default cannot be measured: no framework"):
        search(study(tmp_path / "study"), 3, lambda asked: "no framework")
    assert [each.state for each in search(study(tmp_path / "study"), 1)] == ["lost", "measured"]


def test_all_combinations_and_no_more(tmp_path: Path) -> None:
    space = space_for(
        CASE, workload_named("gemm"), ["threads=1,2,3", "allocator=", "env.OMP_PROC_BIND=", "env.OMP_PLACES="]
    )
    found = open_study(tmp_path / "study", ABOUT, space, 0)
    Search(CASE, workload_named("gemm"), 50, 1, 1.0, 60.0, starter=starter(lambda asked: 1.0)).run(found)
    assert len(found.trials()) == space.size


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.unit.plugins.tuning.tune.test_search import search, speed, study
count = 0
def rate(asked):
    global count
    count += 1
    if count == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return speed(asked)
search(study(Path(sys.argv[1])), 12, rate)
"""


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "study"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, check=False)
    assert done.returncode == -9
    before = study(path).trials()
    (killed,) = [each for each in before if each.state == "running"]
    assert len([each for each in before if each.state == "measured"]) >= 2
    after = search(study(path), 12)
    assert after[: killed.number] == before[: killed.number]
    assert after[killed.number].state == "lost"
    again = [each for each in after if each.settings == killed.settings]
    assert [each.state == "lost" for each in again] == [True, False]
    assert sum(each.state in ("measured", "ended early") for each in after) == 12


def test_settings_that_kill_are_given_up(tmp_path: Path) -> None:
    path = tmp_path / "study"
    search(study(path), 1)
    for _ in range(ATTEMPTS):
        found = study(path)
        trial = found.next(2)
        assert trial is not None
        trial._trial.set_user_attr("worker", {"host": "h", "place": this_worker().place, "pid": 1, "began": "x"})
    killed = trial.settings
    after = search(study(path), 4)
    assert [each.state for each in after if each.settings == killed] == ["lost"] * ATTEMPTS


def test_an_interrupt_keeps_what_is_known(tmp_path: Path) -> None:
    def rate(asked: dict[str, Any]) -> float:
        if asked["interop"] == 2:
            raise KeyboardInterrupt
        return speed(asked)

    path = tmp_path / "study"
    with pytest.raises(KeyboardInterrupt):
        search(study(path), 30, rate)
    kept = study(path).trials()
    assert kept[-1].state == "lost" and kept[-1].reason == "interrupted" and kept[0].value
    assert search(study(path), len(kept))[: len(kept) - 1] == kept[:-1]


def test_a_process_that_was_taken_for_dead_does_not_disturb(tmp_path: Path) -> None:
    mine = study(tmp_path / "study")
    trial = mine.next(3)
    assert trial is not None
    trial._trial.set_user_attr("worker", {"host": "h", "place": this_worker().place, "pid": 1, "began": "x"})
    other = search(study(tmp_path / "study"), 3)
    search_of = Search(CASE, MLP, 3, 2, 1.0, 60.0, starter=starter(speed))
    search_of._measure(mine, trial)
    assert mine.trials() == other


def test_many_processes_share_a_study(tmp_path: Path) -> None:
    text = (
        "import sys; from pathlib import Path; from tests.unit.plugins.tuning.tune.test_search import search, study\n"
        "search(study(Path(sys.argv[1]), task=int(sys.argv[2])), 10, rounds=1, wait=False)"
    )
    study(tmp_path / "study")
    words = [sys.executable, "-c", text, str(tmp_path / "study")]
    running = [subprocess.Popen([*words, str(task)], cwd=ROOT) for task in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    found = study(tmp_path / "study").trials()
    assert 10 <= sum(each.state in ("measured", "ended early") for each in found) <= 12
    assert sum(not each.settings for each in found) == 1


def test_who_lives() -> None:
    mine = this_worker()
    assert is_alive(mine, 0.0, 1e9)
    assert not is_alive(Worker(mine.host, mine.place, mine.pid, "1"), 1e9, 1e9)
    away = Worker("node7", "node7 boot", 1, "")
    assert is_alive(away, 1000.0, 1000.0 + STALE_S - 1) and not is_alive(away, 1000.0, 1000.0 + STALE_S)


def test_a_study_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study"
    study(path)
    with pytest.raises(InputError, match="workload mlp there, gemm here"):
        open_study(path, {**ABOUT, "workload": "gemm"}, SPACE, 1)
    for text in ("not JSON\nat all\n", '{"op_code": 0}\n{}\n', "[1]\n2\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="is not a study"):
            study(path)


def test_an_unfinished_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "study"
    before = search(study(path), 3)
    with path.open("a") as file:
        file.write('{"op_code": 4, "wor')
    assert study(path).trials() == before
    assert len(search(study(path), 4)) == 4


def test_each_start_gets_the_settings(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        seen.append({**json.loads(job.plan.job.command[-1]), **job.plan.stack.run.environment})
        return starter(speed)(job, timeout_s)

    found = study(tmp_path / "study")
    Search(CASE, MLP, 6, 1, 1.0, 60.0, starter=start).run(found)
    default, *others = found.trials()
    assert default.settings == {}
    for (first, second), trial in zip(zip(seen[1::2], seen[2::2], strict=True), others, strict=True):
        assert first.get("OMP_PROC_BIND", "") == seen[0].get("OMP_PROC_BIND", "") and first["interop"] == 0
        assert second.get("OMP_PROC_BIND", "") == trial.settings.get("env.OMP_PROC_BIND", "")
        assert second["interop"] == int(trial.settings.get("interop", "0"))


def test_one_cache_of_compiled_graphs_serves_a_whole_study(tmp_path: Path) -> None:
    seen: set[str] = set()

    def start(job: ImageJob, timeout_s: float) -> StartResult:
        asked = json.loads(job.plan.job.command[-1])
        first = asked["compiler"] and asked["cache"] not in seen
        seen.update([asked["cache"]] if asked["compiler"] else [])
        return starter(speed, overhead=60.0 if first else 0.5)(job, timeout_s)

    found = study(tmp_path / "study")
    Search(replace(CASE, cache="a.compiled"), MLP, 12, 2, 1.0, 60.0, starter=start).run(found)
    assert seen == {"a.compiled"}
    compiled = [each.first_step for each in found.trials() if "compiler" in each.settings]
    assert len(compiled) > 1 and compiled[0] == 60.0 and set(compiled[1:]) == {0.5}
    (outcome,) = run_variants(
        [replace(CASE, cache="a.compiled")], [MLP], [Variant(compiler="torch.compile")], starter=start
    )
    assert "first_epoch_overhead" not in {row.metric for row in rows_of(outcome, "2026-11-29", "")}


def test_the_default_tells_what_reads_variables_and_what_gained_alone_is_joined(tmp_path: Path) -> None:
    space = space_for(CASE, MLP, ["interop=", "env.ONEDNN_MAX_CPU_ISA="], ["1x1"])
    found = open_study(tmp_path / "study", ABOUT, space, 1)
    start = starter(lambda asked: speed(asked) * (1.2 if asked["compiler"] else 1.0), readers=["libgomp"])
    Search(CASE, MLP, 30, 1, 1.0, 60.0, starter=start).run(found)
    names = {name for each in found.trials() for name in each.settings}
    assert "env.OMP_WAIT_POLICY" in names and not names & {"env.KMP_BLOCKTIME", "env.GLIBC_TUNABLES"}
    settings = [each.settings for each in found.trials()]
    assert settings[1:5] == [
        {"compiler": "torch.compile"},
        {"allocator": "tcmalloc"},
        {"allocator": "jemalloc"},
        {"allocator": "tcmalloc", "compiler": "torch.compile"},
    ]
