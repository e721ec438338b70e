"""benchmarks/gains: workers that take turns, what becomes of one that cannot start, and what its rows rest on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan

GAINS = Path(__file__).parents[2] / "benchmarks" / "gains"

WORKER = """
import json, sys
step, numbers = float(sys.argv[1]), json.loads(sys.argv[2])
print("a line of the framework's own", flush=True)
print("hpcgen-bench:", json.dumps({"step_seconds": step, "numbers": numbers}), flush=True)
for line in sys.stdin:
    print("hpcgen-bench:", json.dumps({"wall": step, "cpu": step, "memory": 2**20 * int(line)}), flush=True)
"""


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(GAINS)
    import workers

    return workers


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(GAINS)
    import rows

    return rows


def test_variants_take_turns_and_are_compared_with_the_first(workers: ModuleType) -> None:
    def start(step: float, numbers: str) -> object:
        return workers.Start([sys.executable, "-c", WORKER, str(step), numbers])

    broken = workers.Start([sys.executable, "-c", "raise SystemExit('no such module')"])
    alone = workers.Start([sys.executable, "-c", WORKER, "0.01", "[]"], {"LD_PRELOAD": "libnosuch.so.1"})
    starts = {"plain": start(0.02, "[1, -4]"), "default": start(0.01, "[1, -3.5]"), "broken": broken, "alone": alone}
    found = workers.measure(starts, 4, 0.1, repeats=2)
    assert found.gain("default", "plain").value == pytest.approx(2)
    assert [turn.memory >> 20 for turn in found.turns["default"]] == [10] * 4
    assert found.off("default", "plain") == pytest.approx(0.5 / 4)
    assert len(found.load) == len(found.waited) == 4
    assert list(found.turns) == ["plain", "default"] and "no such module" in found.refused["broken"]
    assert "libnosuch.so.1" in found.refused["alone"]


def test_the_default_of_the_table_is_what_images_have(rows: ModuleType) -> None:
    catalog = Catalog()
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("pytorch"))
    dockerfile = make_kit(plan, catalog).files["Dockerfile"].text.replace('"', "")
    assert all(f"{name}={value}" in dockerfile for name, value in rows.IMAGE.items())


def test_each_row_is_asked_of_its_program_as_bench_asks_it(rows: ModuleType) -> None:
    asked = {name: rows.request_of(row, rows.Way(), 2) for name, row in rows.ROWS.items() if row.framework != "own"}
    assert len(asked) == 7
    assert asked["tf-resnet18"] == asked["resnet18"] != asked["resnet18-inference"]


def test_what_tune_found_is_the_default_with_its_settings(rows: ModuleType) -> None:
    found = rows.tuned({"compiler": "torch.compile", "interop": "1", "env.TORCHINDUCTOR_FREEZING": "1"})
    assert found == rows.Way(
        {**rows.IMAGE, "TORCHINDUCTOR_FREEZING": "1"}, "torch.compile", interop=1, flags=found.flags
    )
    assert msgspec.json.decode(rows.request_of(rows.ROWS["lstm"], found, 2))["interop"] == 1
    plain = rows.tuned({"memory": "plain", "allocator": "tcmalloc", "flags": "-O3 -ffast-math"})
    assert (plain.environment, plain.flags) == (rows.TCMALLOC, "-O3 -ffast-math")


def test_steps_are_timed_when_a_line_asks(rows: ModuleType, tmp_path: Path) -> None:
    """The program of a framework stays as it is: here one that only counts."""
    from hpcgen.plugins.tuning.bench.program import packed

    common = (GAINS.parents[1] / "hpcgen/plugins/tuning/bench/programs/bench_common.py").read_text()
    program = "from bench_common import begin, main, timed\nbegin()\ncount = []\n"
    program += "def step():\n    count.append(1)\n    return [len(count)]\n"
    program += "timed(step, 1)\n"
    text = packed({"bench_common": common, "steps": (GAINS / "steps.py").read_text(), "bench_count": program})
    words = [sys.executable, "-c", text, '{"allocator": ""}']
    done = subprocess.run(words, input="2\n5\n", capture_output=True, text=True, check=True)
    said = [msgspec.json.decode(line.split(":", 1)[1]) for line in done.stdout.splitlines() if line]
    assert said[0]["numbers"] == [3.0] and len(said) == 3
    assert all(each["wall"] > 0 and each["memory"] > 0 for each in said[1:])
