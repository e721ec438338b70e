"""Converted models measured again: what is given to the programs, and what is believed of their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpcgen.core.errors import InputError, JobFailedError, UnknownNameError
from hpcgen.plugins.onnx.cli import converting
from hpcgen.plugins.onnx.ensemble import read_ensemble
from hpcgen.plugins.onnx.measuring import Measuring, converted_ensemble, measure_models
from tests.unit.plugins.onnx.test_conversion import VARIANT, Program, convert

TIMES = """
import json, pathlib, sys
model, step = sys.argv[1:]
job = json.load(open("job.json"))
seen = sorted(str(each) for each in pathlib.Path().rglob("*.onnx"))
timings = [
    {"model": model, "runtime": "onnxruntime", "batch": each, "seconds": [0.5] * job["rounds"],
     "provider": " ".join(seen)}
    for each in job["batches"] or [2]
]
timings += [dict(timings[0], runtime="framework")] * job["framework"]
timings += [dict(timings[0], variant=each) for each in job["variants"]]
said = timings + [dict(timings[0], model="another")]
rest = []
"""


class Times(Program):
    """The step ``time`` alone, in the place of the programs."""

    def __init__(self, more: str = "") -> None:
        super().__init__(more, TIMES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two converted models, each with a variant."""
    assert not convert(tmp_path, Program(), VARIANT).problems
    return tmp_path / "out"


def measured(folder: Path, runner: Any = None, origin: Path | None = None, **how: Any) -> list[Any]:
    there = converted_ensemble(folder)
    loaded = read_ensemble(origin) if origin else None
    return measure_models(there, there.chosen(["a"]), runner or Times(), Measuring(**how), loaded)


def test_the_programs_get_the_files_of_one_model_and_what_is_asked(folder: Path) -> None:
    found = measured(folder, rounds=3, batches=[1, 8])
    assert [(each.runtime, each.variant, each.batch, len(each.seconds)) for each in found] == [
        ("onnxruntime", "", 1, 3),
        ("onnxruntime", "", 8, 3),
        ("onnxruntime", "fp16", 1, 3),
    ]
    assert found[0].provider == "a/fp16/model.onnx a/model.onnx"


def test_with_the_originals_the_framework_is_measured(folder: Path) -> None:
    found = measured(folder, origin=folder.parent / "ensemble.yaml")
    assert [each.runtime for each in found] == ["onnxruntime", "framework", "onnxruntime"]
    assert "given/a.onnx" in found[0].provider


def test_other_originals_are_refused(folder: Path) -> None:
    (folder.parent / "a.onnx").write_text("other weights")
    with pytest.raises(InputError, match=r"a\.onnx is not the file that was converted"):
        measured(folder, origin=folder.parent / "ensemble.yaml")


def test_a_file_that_was_changed_after_the_validation_is_refused(folder: Path) -> None:
    (folder / "a" / "fp16" / "model.onnx").write_text("A")
    with pytest.raises(InputError, match="is not the file that was validated"):
        measured(folder)


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/etc/passwd", "b/model.onnx", "a"])
def test_a_report_leads_to_no_other_files(folder: Path, path: str) -> None:
    report = json.loads((folder / "report.json").read_text())
    report["models"]["a"]["files"][0]["path"] = path
    (folder / "report.json").write_text(json.dumps(report))
    with pytest.raises(InputError, match="is not a file of a"):
        measured(folder)


def test_a_link_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a")
    (folder / "a" / "model.onnx").unlink()
    (folder / "a" / "model.onnx").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="cannot be read"):
        measured(folder)


def test_a_program_that_says_nothing_is_told_with_its_last_lines(folder: Path) -> None:
    with pytest.raises(JobFailedError, match="no memory left"):
        measured(folder, Times("sys.exit('no memory left')"))


def test_an_unknown_model_is_named(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="has no model 'c'"):
        converted_ensemble(folder).chosen(["c"])


def test_the_command_prints_ratios_with_intervals(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "runner_of", lambda *given: Times())
    words = [str(folder), "--here", "--only", "a", "--rounds", "3"]
    done = CliRunner().invoke(converting.bench, words, obj=[])
    assert done.exit_code == 0, done.output
    head, first, *_ = [line.split() for line in done.stdout.splitlines()]
    assert head[:5] == ["model", "batch", "runtime", "provider", "ms/call"]
    assert first[0] == "a" and "500" in first
    told = json.loads(CliRunner().invoke(converting.bench, [*words, "--json"], obj=[]).stdout)
    assert [each["timing"]["variant"] for each in told["runtimes"] if "variant" in each["timing"]] == ["fp16"]
    assert told["runtimes"][1]["ratio"] == {"value": 1.0, "low": 1.0, "high": 1.0}
