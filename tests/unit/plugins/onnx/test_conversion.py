"""What becomes of an ensemble whose programs are honest, wrong or hostile: they run here in the place of an image."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.core.errors import OutputError
from hpcgen.plugins.onnx import start
from hpcgen.plugins.onnx.conversion import EnsembleConversion, convert_ensemble
from hpcgen.plugins.onnx.convert import How
from hpcgen.plugins.onnx.ensemble import read_ensemble
from hpcgen.plugins.onnx.results import read_report
from hpcgen.plugins.onnx.start import LogFile
from hpcgen.plugins.onnx.target import OnnxTarget
from hpcgen.plugins.onnx.work import ModelWork
from hpcgen.running.verify.starts import StartResult

ENSEMBLE = """\
name: two
models:
  a: {from: onnx, file: a.onnx, inputs: {x: {shape: [batch, 2]}}, outputs: {y: }}
  b: {from: onnx, file: a.onnx, inputs: {x: {shape: [batch, 2]}}, outputs: {y: }}
"""
VARIANT = "optimise: {fp16: {share: 0.5}}\n"
PROGRAM = """
import json, os, sys
model, *steps = sys.argv[1:]
step = steps[0]
rest = [] if step in ("convert", "time") else [step]
os.makedirs("/".join([model, *rest]), exist_ok=True)
open("/".join([model, *rest, "model.onnx"]), "w").write(model)
open(f"{model}/reference.npz", "w").write("x")
difference = {"output": "y", "data": "random, batch 2", "elements": 4, "largest_absolute": 1e-7, "beyond": 0.0}
tried = [{"data": f"random, batch {each}", "axes": {"batch": each}} for each in (2, 1)]
file = {"name": "model.onnx", "opset": 18, "nodes": 1, "parameters": 4}
said = {"model": model, "file": file, "differences": [difference], "tried": tried}
if step == "convert":
    said["origin"] = "onnx"
else:
    said.update(variant=rest[0], runtime="onnxruntime")
print("working")
"""
END = """
if isinstance(said, dict):
    said["differences"] += [dict(each, data="random, batch 1") for each in said["differences"]]
with open(f"said/{model}.{(rest or [step])[0]}.json", "w") as out:
    out.write(said if isinstance(said, str) else json.dumps(said))
"""


class Program:
    """Runs Python in the work folder, in the place of the programs."""

    content, foreign, blocks, threads, memory_gb = "", False, {}, 1, None

    def __init__(self, more: str = "", program: str = PROGRAM) -> None:
        self.text = program + more + END

    def start(self, work: ModelWork, words: list[str], timeout_s: float, log: LogFile) -> StartResult:
        # Without any package it starts in half of the time.
        done = subprocess.run(
            [sys.executable, "-ISu", "-c", self.text, *words],
            cwd=work.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        for line in (done.stdout + done.stderr).splitlines():
            log.line(line)
        return StartResult(done.returncode, [], 0.1)


def convert(tmp_path: Path, runner: Program, more: str = "", said: list[str] | None = None) -> EnsembleConversion:
    file = tmp_path / "ensemble.yaml"
    file.write_text(ENSEMBLE + more)
    (tmp_path / "a.onnx").write_text("weights")
    target = OnnxTarget(provider="cpu", engine="onnxruntime", runtime="1.23.2", opset=23)
    how = How(target, 60, 0, (said if said is not None else []).append)
    loaded = read_ensemble(file)
    return convert_ensemble(loaded, ["a", "b"], tmp_path / "out", runner, how, "hpcgen onnx convert")


def test_a_valid_ensemble_is_put_in_its_place_with_its_report(tmp_path: Path) -> None:
    found = convert(tmp_path, Program(), VARIANT)
    out = tmp_path / "out"
    assert not found.problems and found.folder == out
    files = sorted(str(each.relative_to(out)) for each in out.rglob("*") if each.is_file())
    models = [f"{name}/{each}" for name in "ab" for each in ("fp16/model.onnx", "model.onnx")]
    assert files == [*models, "ensemble.yaml", "report.html", "report.json", "stack.yaml"]
    report = read_report(out)
    assert report == found.report and report.models["a"].passed
    assert [each.path for each in report.given] == ["ensemble.yaml", "a.onnx"]
    assert {each.path for each in report.models["b"].files} == {"b/fp16/model.onnx", "b/model.onnx"}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.onnx", "ensemble.yaml", "out"]
    assert not convert(tmp_path, Program()).problems
    assert not (out / "a" / "fp16").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("difference.update(beyond=0.25, at=[0, 1], original=1.0, converted=1.5)", "25.00% of 4 values exceed"),
        ("difference.update(beyond=0.25, passed=True)", "25.00% of 4 values"),
        ("difference.update(wrong='another shape')", "another shape"),
        ("difference.update(output='z')", "the output y was not compared"),
        ("said['differences'] = []", "no comparison"),
        ("said['file'] = None", "names no file"),
        ("file['name'] = '../a.onnx'", "there is no such model file"),
        ("file['external'] = ['/etc/passwd']", "there is no such model file"),
        ("said['model'] = 'other'", "speaks of another model"),
        ("said.update(failed='no converter for Frob', remedy='write one')", "no converter for Frob"),
        ("said['surprise'] = 1", "is invalid"),
        ("said = '{'", "is invalid"),
        ("said = '[' * 100000", "is invalid"),
        ("said = '{\"model\": \"' + 20 * 1024 * 1024 * 'a' + '\"}'", "larger than"),
        ("said['failed'] = 'a\\x1b[2Jb'", "is invalid"),
        ("sys.exit('boom\\x1b[2J')", "it ended with status 1 and said: working | boom [2J"),
        ("os.kill(os.getpid(), 9)", "the signal SIGKILL"),
        ("os.rmdir('said'); os.symlink('/etc', 'said')", "is invalid|ended"),
        ("os.remove(f'{model}/model.onnx'); os.symlink('/etc/passwd', f'{model}/model.onnx')", "not a regular file"),
        ("os.makedirs(f'{model}/deep/er'); open(f'{model}/deep/er/x', 'w')", "so deep"),
        ("os.rename(model, 'moved'); os.symlink('/etc', model)", "it is not a folder"),
    ],
)
def test_a_model_that_is_not_valid_leaves_the_older_result(tmp_path: Path, more: str, message: str) -> None:
    assert not convert(tmp_path, Program()).problems
    before = (tmp_path / "out" / "report.json").read_text()
    found = convert(tmp_path, Program(f"\nif model == 'b':\n    {more}\n"))
    assert [each.where for each in found.problems] == ["b"]
    assert any(word in found.problems[0].message for word in message.split("|")), found.problems
    assert found.problems[0].message.isprintable()
    assert (tmp_path / "out" / "report.json").read_text() == before
    assert found.folder == tmp_path / "out.failed" and not (tmp_path / "out.partial").exists()
    kept = json.loads((found.folder / "report.json").read_text())
    assert list(kept["models"]) == ["a", "b"]
    assert "working" in (found.folder / "b" / "log" / "b.convert.log").read_text()


def test_a_log_has_an_end_and_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "MOST_LOGGED", 20)
    found = convert(tmp_path, Program("\nif model == 'b': print(30 * 'x'); print('end'); said['failed'] = 'so'\n"))
    log = (found.folder / "b" / "log" / "b.convert.log").read_text()
    assert log == "working\n… (35 more bytes were left out)\n"


def test_variants_have_tolerances_of_their_own(tmp_path: Path) -> None:
    more = "\nif rest: difference.update(beyond=0.4)\n"
    assert not convert(tmp_path, Program(more), VARIANT).problems
    found = convert(tmp_path, Program(more), VARIANT.replace("0.5", "0.1"))
    assert [each.where for each in found.problems] == ["a: fp16", "b: fp16"]


def test_a_variant_that_cannot_be_made_is_told_and_no_part_of_the_result(tmp_path: Path) -> None:
    told: list[str] = []
    found = convert(tmp_path, Program("\nif rest: said.update(failed='no such operator')\n"), VARIANT, told)
    assert not found.problems and not (tmp_path / "out" / "a" / "fp16").exists()
    assert "warning: a: fp16 was not made: no such operator" in told
    assert sorted(each.name for each in (tmp_path / "out" / "log").iterdir()) == ["a.fp16.log", "b.fp16.log"]
    # The same place can be converted into again.
    assert not convert(tmp_path, Program()).problems and not (tmp_path / "out" / "log").exists()


ALL = """
for step in steps:
    os.makedirs("/".join([model, *([step] if step != "convert" else [])]), exist_ok=True)
    open("/".join([model, *([step] if step != "convert" else []), "model.onnx"]), "w").write(model)
    of = {"origin": "onnx"} if step == "convert" else {"variant": step, "runtime": "onnxruntime"}
    each = [difference, dict(difference, data="random, batch 1")]
    with open(f"said/{model}.{step}.json", "w") as out:
        json.dump({"model": model, "file": file, "differences": each, "tried": tried, **of}, out)
    if step == "fp16":
        DIES
os._exit(0)
"""
TWO = "optimise: {fp16: , ort-all: }\n"


class Counted(Program):
    """Notes the words of each start."""

    def start(self, work: ModelWork, words: list[str], timeout_s: float, log: LogFile) -> StartResult:
        self.words = [*getattr(self, "words", []), words]
        return super().start(work, words, timeout_s, log)


def test_all_steps_of_a_model_are_one_start(tmp_path: Path) -> None:
    program = Counted(ALL.replace("DIES", "pass"))
    assert not convert(tmp_path, program, TWO).problems
    assert program.words == [[model, "convert", "fp16", "ort-all"] for model in "ab"]


def test_steps_after_one_that_ended_the_process_are_begun_again(tmp_path: Path) -> None:
    program = Counted(ALL.replace("DIES", "os._exit(1)"))
    assert not convert(tmp_path, program, TWO).problems
    assert [words[1:] for words in program.words[:2]] == [["convert", "fp16", "ort-all"], ["ort-all"]]


def test_stochastic_models_are_judged_by_their_distributions(tmp_path: Path) -> None:
    more = "\ndifference.update(beyond=0.9, distance=0.1, limit=0.2)\n"
    assert convert(tmp_path, Program(more)).problems
    marked = ENSEMBLE.replace("outputs:", "stochastic: true, outputs:")
    (tmp_path / "s").mkdir()
    file = tmp_path / "s" / "ensemble.yaml"
    file.write_text(marked)
    (tmp_path / "s" / "a.onnx").write_text("weights")
    target = OnnxTarget(provider="cpu", engine="onnxruntime", runtime="1.23.2")
    loaded = read_ensemble(file)
    assert not convert_ensemble(loaded, ["a"], tmp_path / "one", Program(more), How(target, 60, 0)).problems
    worse = more.replace("0.1", "0.3")
    assert convert_ensemble(loaded, ["a"], tmp_path / "two", Program(worse), How(target, 60, 0)).problems


def test_programs_are_told_all_and_written_anew_before_each_start(tmp_path: Path) -> None:
    more = """
asked = json.load(open("job.json"))
assert asked["opset"] == 23 and asked["ensemble"]["models"][model]["inputs"]["x"]["shape"] == ["batch", 2], asked
assert sorted(os.listdir(".")) == sorted(["given", "job.json", "log", "programs", "said", model]), os.listdir(".")
assert open("given/a.onnx").read() == "weights" and not os.path.exists("programs/mine.py")
open("programs/mine.py", "w").write("x")
os.remove("job.json")
os.symlink("/etc/passwd", "job.json")
"""
    assert not convert(tmp_path, Program(more), VARIANT).problems


def test_other_things_are_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("work")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        convert(tmp_path, Program())
    (out / "thesis.txt").unlink()
    assert not convert(tmp_path, Program()).problems
    (out / "thesis.txt").write_text("work")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        convert(tmp_path, Program())
    (tmp_path / "out.partial").mkdir()
    (out / "thesis.txt").unlink()
    with pytest.raises(OutputError, match="in the way"):
        convert(tmp_path, Program())


def test_what_was_done_is_kept_when_it_is_interrupted(tmp_path: Path) -> None:
    class Interrupted(Program):
        def start(self, work: ModelWork, *rest: Any) -> StartResult:
            if work.model == "b":
                raise KeyboardInterrupt
            return super().start(work, *rest)

    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path, Interrupted(), "", told)
    assert (tmp_path / "out.failed" / "a" / "a" / "model.onnx").exists() and not (tmp_path / "out").exists()
    assert f"warning: a until then: {tmp_path / 'out.failed'}" in told


def test_a_report_of_a_newer_release_is_named_as_such(tmp_path: Path) -> None:
    convert(tmp_path, Program())
    file = tmp_path / "out" / "report.json"
    data = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode(data | {"conversion": 2, "hpcgen": "9.0"}))
    with pytest.raises(Exception, match=r"hpcgen 9\.0"):
        read_report(tmp_path / "out")


@pytest.mark.root
def test_a_full_disk_leaves_the_older_result(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    try:
        assert not convert(disk, Program()).problems
        before = (disk / "out" / "report.json").read_bytes()
        fills = "\nif model == 'b': os.write(os.open(f'{model}/filling', os.O_CREAT | os.O_WRONLY), bytes(8 << 20))\n"
        with pytest.raises(OutputError, match="the disk is full"):
            convert(disk, Program(fills), VARIANT)
        assert (disk / "out" / "report.json").read_bytes() == before
        assert (disk / "out" / "a" / "model.onnx").read_text() == "a"
    finally:
        subprocess.run(["umount", disk], check=True)
