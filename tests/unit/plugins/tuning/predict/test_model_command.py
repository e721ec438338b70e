"""``hpcgen model``: from rows to a model, predictions, refusals and plots."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Command
from tests.unit.plugins.tuning.predict.rows import made

THREE_D = ("--workload", "3dgan", "--machine", "supermuc-thin")


def test_a_model_is_fitted_written_shown_and_asked(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in made()))
    done = hpcgen("model", "fit", "--rows", "more.jsonl", "-o", "model.json")
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0] == "176 rows of 18 workloads on 13 machines; 181 left out: doubtful, no speed, or of variables alone"
    assert any("768 nodes: 3.94, and the others say 5.222" in line for line in told)
    assert any(line.startswith("onnxruntime for pytorch ") and line.endswith(" no") for line in told)
    shown = hpcgen("model", "show", "model.json").stdout.splitlines()
    assert shown == told[: len(shown)] and shown[2].startswith("term ")
    asked = ("--workload", "net2", "--machine", "box500", "--framework", "pytorch", "--compiler", "xla", "--json")
    mine = json.loads(hpcgen("model", "predict", "--model", "model.json", *asked).stdout)
    assert mine == json.loads(hpcgen("model", "predict", "--rows", "more.jsonl", *asked).stdout)
    assert mine["prediction"]["metric"] == "samples_per_second" and mine["prediction"]["rows_used"]


def test_a_series_is_predicted_by_its_law(hpcgen: Command) -> None:
    done = hpcgen("model", "predict", *THREE_D, "--mpi", "host", "--nodes", "700")
    assert done.stdout.startswith("5.729 s per epoch, 95 % interval 5.58 to 5.882 (scaling: ring, known)\n")
    linear = json.loads(hpcgen("model", "predict", *THREE_D, "--mpi", "host", "--by", "linear", "--json").stdout)
    assert linear["prediction"]["by"] == "linear"
    many = hpcgen("model", "predict", *THREE_D, "--by", "scaling")
    assert many.returncode == 3 and "4 series of rows by nodes match" in many.stderr


def test_a_refusal_says_what_to_measure(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text("name: new\nkind: inference\nbatch: 4\n")
    asked = ("--workload", "new.yaml", "--machine", "crpl-cpu", "--framework", "tvm")
    done = hpcgen("model", "predict", *asked)
    assert done.returncode == 0 and done.stdout.endswith("measure next: new with tvm on crpl-cpu\n")
    found = json.loads(hpcgen("model", "predict", *asked, "--json").stdout)["refusal"]
    assert found["measure_next"] == {"workload": "new", "framework": "tvm", "machine": "crpl-cpu"}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("scaling", THREE_D),
        ("predicted", THREE_D[:2]),
        ("variants", ("--workload", "mnist-cnn", "--machine", "hlrs-modak-cpu")),
        ("variants", (*THREE_D, "--nodes", "128")),
    ],
)
def test_plots_are_written(hpcgen: Command, tmp_path: Path, what: str, words: tuple[str, ...]) -> None:
    done = hpcgen("model", "plot", what, *words, "-o", "plot.svg")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("plot", "scaling", *THREE_D, "-o", "plot.pdf"), 2, "ends in .png or .svg"),
        (("plot", "variants", "--workload", "3dgan", "-o", "a.svg"), 2, "--machine is required"),
        (("plot", "variants", *THREE_D, "-o", "a.svg"), 3, "no row is of 3dgan on supermuc-thin with 1 nodes"),
        (
            ("plot", "scaling", "--workload", "mnist-cnn", "-o", "a.svg"),
            3,
            "no rows differ only in the number of nodes",
        ),
        (("plot", "scaling", "--workload", "3dgna", "-o", "a.svg"), 4, "did you mean 3dgan"),
        (("predict", "--workload", "3dgan", "--machine", "supermuc-thn"), 4, "did you mean supermuc-thin"),
        (("predict", *THREE_D, "--install", "gift"), 3, "0 kinds of software in the rows match"),
        (("predict", *THREE_D, "--framework", "x", "--install", "gift"), 3, "`install`"),
        (("fit", "--rows", "x.csv"), 2, "ends in .yaml or .jsonl"),
        (("fit", "-o", "nowhere/model.json"), 7, "cannot write"),
        (("show", "none.json"), 3, "cannot be read"),
    ],
)
def test_mistakes_are_told(hpcgen: Command, words: tuple[str, ...], code: int, said: str) -> None:
    done = hpcgen("model", *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
