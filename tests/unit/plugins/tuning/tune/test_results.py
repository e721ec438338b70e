"""The comparison at the end in words, and as a layout in a profile that stays as it was written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import load
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench import run_rounds
from hpcgen.plugins.tuning.bench.comparison import Compared, compare
from hpcgen.plugins.tuning.bench.workloads import workload_named
from hpcgen.plugins.tuning.cli.tune_report import best_text, data, report, verdict
from hpcgen.plugins.tuning.tune.profile import LayoutEntry, add_to, entry_for
from hpcgen.plugins.tuning.tune.space import Settings, cell_of
from hpcgen.plugins.tuning.tune.study import Trial
from tests.conftest import ROOT
from tests.unit.plugins.tuning.bench.test_running import case, starter

MLP = workload_named("mlp")


def compared(rate: Callable[[dict[str, Any]], float], settings: Settings, rounds: int = 3) -> list[Compared]:
    cells = [cell_of(case("pytorch-ddp"), MLP, each) for each in ({}, settings)]
    run_rounds(cells, rounds=rounds, starter=starter(rate))
    return compare(cells)


def noisy(times: float) -> Callable[[dict[str, Any]], float]:
    noise = cycle([1.0, 1.02, 0.98, 1.01, 1.0, 0.99])
    return lambda asked: 100.0 * next(noise) * (times if asked["interop"] else 1.0)


def faster() -> list[Compared]:
    return compared(noisy(2.0), {"layout": "2x4", "interop": "1", "env.OMP_PROC_BIND": "close"})


def entry() -> LayoutEntry:
    found = faster()
    return entry_for(found[1], found[0], "2026-11-23")


def test_the_verdict_says_when_the_noise_covers_the_difference() -> None:
    assert " times as fast as the default, with 95 % confidence" in verdict(compared(noisy(1.5), {"interop": "1"}, 6))
    assert "but not in both halves" in verdict(compared(noisy(1.5), {"interop": "1"}))
    assert "the noise covers the difference" in verdict(compared(noisy(1.0), {"interop": "1"}))
    assert "Keep the default: the best of the search is 0.497" in verdict(compared(noisy(0.5), {"interop": "1"}))
    assert "nothing is known but" in verdict(faster()[:1])


def test_the_verdict_and_the_layout_name_another_image() -> None:
    fast = replace(case("pytorch-ddp"), image="fast.sif")
    settings = {"image": "fast.sif", "interop": "1"}
    cells = [cell_of(case("pytorch-ddp"), MLP, each, [fast]) for each in ({}, settings)]
    run_rounds(cells, rounds=6, starter=starter(noisy(1.5)))
    found = compare(cells)
    assert verdict(found).startswith("image=fast.sif interop=1 is 1.")
    assert "with image=fast.sif interop=1" in (entry_for(found[1], found[0], "2026-11-30").layout.measured or "")


def test_a_machine_that_changes_within_the_comparison_allows_no_conclusion() -> None:
    speeds = iter([100.0, 350.0, 351.0, 350.0, 100.0, 101.0])
    found = compared(lambda asked: next(speeds), {"interop": "1"})
    assert found[1].verdict == "the machine changed by 3.5 ×: no conclusion"
    assert verdict(found).startswith("No conclusion: the machine changed by 3.5 ×")
    drifting = iter([100.0, 450.0, 1350.0, 300.0, 200.0, 900.0])
    assert compared(lambda asked: next(drifting), {"interop": "1"})[1].verdict == "faster"


def test_the_report_says_how_the_default_alone_changed() -> None:
    trials = [
        Trial(0, {}, "measured", [53.1], 1.0, "", "", [53.1]),
        Trial(1, {"interop": "1"}, "measured", [15.0], 0.98, "", "", [15.2]),
    ]
    text = report(trials, faster(), sys.stdout)
    assert "the default alone had 15.2 to " in text and "The machine changed by " in text
    assert "The machine changed" not in report([], faster(), sys.stdout)


def test_the_report_counts_trials_and_gives_reasons() -> None:
    trials = [
        Trial(0, {}, "measured", [10.0], 1.0, "", "", [10.0]),
        Trial(1, {"interop": "1"}, "measured", [20.0], 2.0, "", "", [10.0]),
        Trial(2, {"allocator": "jemalloc"}, "refused", [], None, "the image has no libjemalloc", ""),
    ]
    text = report(trials, faster(), sys.stdout)
    assert "3 trials: 2 measured, 1 refused" in text and "the image has no libjemalloc" in text
    assert best_text(trials[1]) == "best so far interop=1, 2.000 times the default"
    assert data(trials, faster())["trials"] == trials


def test_a_layout_says_how_it_was_measured() -> None:
    found = entry()
    assert (found.layout.ranks_per_node, found.layout.threads_per_rank) == (2, 4)
    assert "mlp by pytorch, 2026-11-23" in found.layout.measured
    assert found.layout.measured.endswith("with interop=1 env.OMP_PROC_BIND=close")
    assert found.source.verified == "yes" and found.source.checked == "2026-11-23"


PROFILE = "# ours\nname: x\nlayouts:  # by hand\n  # the first\n  - partition: cpu\n    ranks_per_node: 1\n"
AFTER = """\
    threads_per_rank: 2

sources:
  # of the site
  layouts:
    from: us
    checked: 2026-11-21
    verified: yes
"""


def test_comments_and_order_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(PROFILE + AFTER)
    add_to(path, entry())
    lines = path.read_text().splitlines()
    assert lines[:4] == ["# ours", "name: x", "layouts:  # by hand", "  - partition: main"]
    assert [line for line in lines if line in (PROFILE + AFTER).splitlines()].count("  # the first") == 1
    data = load(path).data
    assert [each["ranks_per_node"] for each in data["layouts"]] == ["2", "1"]
    assert data["sources"]["layouts"]["from"] == "us"


@pytest.mark.parametrize(
    "text",
    [
        "name: x\n",
        "name: x",
        "name: x\nlayouts: []\n",
        "name: x\nsources:\n  mpi: # theirs\n    from: them\n    checked: 2026-11-21\n    verified: no\n",
        "name: x\nlayouts:\n- partition: cpu\n  ranks_per_node: 1\n  threads_per_rank: 1\n",
    ],
)
def test_profiles_without_layouts_or_sources(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    before = load(path).data
    add_to(path, entry())
    after = load(path).data
    assert after["layouts"][0]["ranks_per_node"] == "2" and after["name"] == "x"
    assert after["layouts"][1:] == (before.get("layouts") or [])
    assert after["sources"]["layouts"]["checked"] == "2026-11-23"
    assert {name: each for name, each in after["sources"].items() if name != "layouts"} == before.get("sources", {})


def test_a_shipped_profile_can_be_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "site_profiles" / "workstation.yaml"
    path.parent.mkdir()
    text = (ROOT / "site_profiles" / "workstation.yaml").read_text()
    path.write_text(text)
    add_to(path, entry())
    site = Catalog([tmp_path]).site("workstation")
    assert site.layouts[0] == entry().layout
    kept = path.read_text().splitlines()
    assert [line for line in text.splitlines() if line not in kept] == []


@pytest.mark.parametrize("text", [json.dumps({"name": "x"}), "name: x\nsources: {a: {from: b}}\n", "{name: x}\n"])
def test_what_is_written_otherwise_stays_and_the_entry_is_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="add this by hand"):
        add_to(path, entry())
    assert path.read_text() == text
