"""A machine under a load that comes and goes, by a clock that is made up: the report says what is so."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcgen.plugins.tuning.bench.comparison import Compared, compare
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.cli.tune_report import report, verdict
from hpcgen.plugins.tuning.tune import Search, TuneStudy, cell_of, confirm, finalist, finalists, open_study, space_for
from tests.unit.plugins.tuning.bench.test_running import case, starter

CASE = case()
MLP = workload_named("mlp")
VARY = [
    "interop=1,2",
    "allocator=jemalloc,tcmalloc",
    "compiler=",
    *(
        f"env.{name}="
        for name in ("OMP_PROC_BIND", "OMP_PLACES", "KMP_BLOCKTIME", "KMP_AFFINITY", "ONEDNN_MAX_CPU_ISA")
    ),
]
SPACE = space_for(CASE, MLP, VARY, ["1x1"])


def machine(seed: int, gain: float) -> Callable[[dict[str, Any]], float]:
    """Speeds with 3 % of noise on a machine where a load that takes all but a 3.5th comes and goes.

    Parameters
    ----------
    gain: how many times as fast one allocator makes it; nothing else has an effect but one rank, which halves it.
    """
    chance = random.Random(seed)
    clock = [0.0]
    until, is_loaded = [0.0], [True]

    def rate(asked: dict[str, Any]) -> float:
        clock[0] += 10.0
        while clock[0] > until[0]:
            is_loaded[0] = not is_loaded[0]
            until[0] += chance.expovariate(1 / 120.0)
        speed = 50.0 * chance.lognormvariate(0.0, 0.03) / (3.5 if is_loaded[0] else 1.0)
        return speed * (gain if asked["allocator"] == "tcmalloc" else 1.0) * (0.5 if asked["threads"] == 1 else 1.0)

    return rate


def tuned(path: Path, seed: int, gain: float) -> tuple[TuneStudy, list[Compared]]:
    """A search and its comparison at the end."""
    study = open_study(path, {}, SPACE, seed)
    start = starter(machine(seed, gain))
    Search(CASE, MLP, 12, 3, 1.0, 60.0, starter=start).run(study)
    best = finalist(CASE, MLP, finalists(study), (), 3, 1.0, 60.0, start)
    cells = [cell_of(CASE, MLP, settings) for settings in ({}, best)]
    confirm(cells, 7, 1.0, 60.0, start)
    return study, compare(cells)


@pytest.mark.parametrize("gain", [1.0, 1.4])
def test_what_is_said_of_a_drifting_machine_is_so(tmp_path: Path, gain: float) -> None:
    concluded = 0
    for seed in range(20):
        study, found = tuned(tmp_path / f"{seed}", seed, gain)
        said, text = verdict(found), report(study.trials(), found, sys.stdout)
        best = found[1].outcome.variant
        true = (gain if best.allocator == "tcmalloc" else 1.0) * (0.5 if best.threads == 1 else 1.0)
        assert "The machine changed by " in text and said in text, text
        if "with 95 % confidence" in said:
            assert true > 1, text
            concluded += 1
        elif said.startswith("Keep the default"):
            assert true <= 1, text
        elif found[1].verdict.endswith("no conclusion"):
            assert said.startswith("No conclusion: the machine changed by "), text
    assert concluded >= 10 if gain > 1 else not concluded
