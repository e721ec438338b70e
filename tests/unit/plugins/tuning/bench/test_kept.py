"""Rounds kept in a folder: shared by several processes, gone on with, and refused where they are of something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench.comparison import compare
from hpcgen.plugins.tuning.bench.kept import KeptRounds
from hpcgen.plugins.tuning.bench.running import BenchOutcome, Rate, outcomes_for, run_rounds
from hpcgen.plugins.tuning.bench.variants import parse_variants
from hpcgen.plugins.tuning.bench.workloads import workload_named
from tests.unit.plugins.tuning.bench.test_running import case, starter

ROUNDS = 6


def outcomes(vary: str = "threads=1,2") -> list[BenchOutcome]:
    return outcomes_for([case()], [workload_named("gemm"), workload_named("mlp")], parse_variants([vary]))


def process(folder: Path, share: int = 1, task: int = 0, rate: Any = None) -> list[BenchOutcome]:
    """What one process does with its rounds of the folder."""
    found = outcomes()
    kept = KeptRounds(folder, found, 1.0)
    kept.read(ROUNDS)
    run_rounds(
        found,
        rounds=ROUNDS,
        is_wanted=lambda workload, number: number % share == task and not kept.has(workload, number),
        on_round=kept.keep,
        starter=starter(rate or (lambda asked: 100.0 * asked["threads"])),
    )
    kept.read(ROUNDS)
    return found


def speeds(task: int) -> Any:
    """One node is faster than another, and both variants alike on it."""
    return lambda asked: 100.0 * (task + 1) * asked["threads"]


def test_rounds_of_several_nodes_are_compared_each_with_its_own(tmp_path: Path) -> None:
    for task in range(3):
        process(tmp_path / "rounds", 3, task, speeds(task))
    files = sorted(path.name for path in (tmp_path / "rounds").iterdir())
    assert files[0] == "gemm-round-1.json" and len(files) == 2 * ROUNDS
    last = process(tmp_path / "rounds", rate=lambda asked: "measured again")
    assert [len(each.rates) for each in last] == [ROUNDS] * 4
    assert last[0].values == [100.0, 200.0, 300.0] * 2
    ratio = compare(last)[1].ratio
    assert ratio is not None and (ratio.value, ratio.low) == (pytest.approx(2.0), pytest.approx(2.0))


def test_what_a_task_did_not_end_is_measured_by_the_next(tmp_path: Path) -> None:
    calls = iter(range(100))

    def killed(asked: dict[str, Any]) -> float:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return 50.0

    with pytest.raises(KeyboardInterrupt):
        process(tmp_path, rate=killed)
    assert [path.name for path in tmp_path.iterdir()] == ["gemm-round-1.json"]
    found = process(tmp_path)
    assert found[0].values == [50.0] + [100.0] * 5


def test_a_reason_is_kept_and_not_tried_again(tmp_path: Path) -> None:
    process(tmp_path, 2, 0, lambda asked: "no compiler" if asked["threads"] == 2 else 10.0)
    tried: list[int] = []

    def rate(asked: dict[str, Any]) -> float:
        tried.append(asked["threads"])
        return 10.0

    found = process(tmp_path, 2, 1, rate)
    assert set(tried) == {1}
    assert compare(found)[1].verdict == "no compiler"


def others() -> Iterator[tuple[list[BenchOutcome], float, str]]:
    yield outcomes("threads=1,2,4"), 1.0, "variants threads=1, threads=2, not threads=1, threads=2, threads=4"
    yield outcomes(), 2.0, "seconds 1, not 2"
    elsewhere = outcomes_for([case(site="hlrs-testbed")], [workload_named("gemm")], parse_variants(["threads=1,2"]))
    yield elsewhere, 1.0, "machines workstation/"


def test_rounds_of_another_command_are_refused(tmp_path: Path) -> None:
    process(tmp_path)
    for found, seconds, said in others():
        with pytest.raises(InputError, match="--keep another folder") as raised:
            KeptRounds(tmp_path, found, seconds).read(ROUNDS)
        assert said in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"about": {}, "results": [{"value": -1}]}', "[" * 100_000])
def test_a_damaged_round_names_its_file(tmp_path: Path, text: str) -> None:
    process(tmp_path)
    (tmp_path / "mlp-round-2.json").write_text(text)
    with pytest.raises(InputError, match=r"(?s)mlp-round-2\.json.*damaged.*measured again"):
        process(tmp_path)


def test_rates_become_measurements_once(tmp_path: Path) -> None:
    kept = KeptRounds(tmp_path, found := process(tmp_path), 1.0)
    assert not kept.is_added()
    kept.note_added()
    assert kept.is_added()
    found[0].rates[ROUNDS] = Rate(1.0, 0.0, "2", 1.0)
    assert not kept.is_added()
