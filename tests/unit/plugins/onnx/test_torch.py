"""Models of PyTorch and transformers: each is converted right, also at lengths that its report has not, or refused.

``HPCGEN_TEST_TORCH`` names a Python with torch, transformers and what ``hpcgen[onnx]`` installs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.plugins.onnx.convert import problem_of, spelled, with_verdicts
from hpcgen.plugins.onnx.ensemble import read_ensemble
from hpcgen.plugins.onnx.records import Converted
from hpcgen.plugins.onnx.work import ModelWork

pytestmark = pytest.mark.slow
VARIABLE = "HPCGEN_TEST_TORCH"
MODELS = Path(__file__).with_name("torch_models.py")
ROWS = {"x": {"shape": ["batch", 6]}}
STEPS = {"x": {"shape": ["batch", "time", 6]}}
WORDS: dict[str, Any] = {"words": {"shape": ["batch", "time"], "dtype": "int64", "high": 50}}
IMAGE = {"image": {"shape": ["batch", 3, "height", "width"]}}
TEXT = {
    "input_ids": {"shape": ["batch", "time"], "dtype": "int64", "high": 99},
    "attention_mask": {"shape": ["batch", "time"], "dtype": "int64", "low": 1, "high": 2},
}
LENGTHS = {"time": 10, "height": 12, "width": 16}

# The judge flattens and compares by itself: it uses nothing of the programs.
TRIAL = """
import json, sys
import numpy as np
from programs import common, main

name, places, sizes = sys.argv[1], *map(json.loads, sys.argv[2:])
counts = {}


def counted(module, call):
    own = getattr(module, call)

    def one_more(*given, **more):
        key = f"{call}{' dynamo' if more.get('dynamo') else ''}"
        counts[key] = counts.get(key, 0) + 1
        return own(*given, **more)

    setattr(module, call, one_more)


import torch.onnx

counted(torch.onnx, "export")
counted(torch.jit, "trace")
main.Steps(name).one("convert")
record = common.heard(f"{name}.convert")
if not record.get("failed"):
    import onnxruntime, torch, torch_models

    given = common.job()["ensemble"]["models"][name]
    function = getattr(torch_models, given["factory"].split(":")[1])
    module = function(**given["arguments"]).eval()
    session = onnxruntime.InferenceSession(f"{name}/model.onnx")
    apart = 0.0
    for axes in sizes:
        axes.update(record.get("fixed", {}))
        random, feeds = np.random.default_rng(1), {}
        for each, put in given["inputs"].items():
            shape = [axes.get(length, length) for length in put["shape"]]
            whole = random.integers(int(put["low"]), max(int(put["high"]), 1), shape)
            feeds[each] = (whole if put["dtype"] == "int64" else random.random(shape)).astype(put["dtype"])
        tensors = {each: torch.from_numpy(value) for each, value in feeds.items()}
        with torch.no_grad():
            result = module(**tensors) if name in ("bert", "gpt2") else module(*tensors.values())
        if hasattr(result, "to_tuple"):
            result = dict(result)
        leaves = [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        for at, found in enumerate(session.run(None, feeds)):
            wanted = leaves[places[at] if places else at].numpy()
            apart = max(apart, float(np.abs(wanted.reshape(found.shape) - found).max(initial=0.0)))
    record["counts"] = counts
    record["apart"], record["names"] = apart, [each.name for each in session.get_outputs()]
print("\\n" + json.dumps(record))
"""


def model(kind: str, inputs: dict[str, Any] = ROWS, **more: Any) -> dict[str, Any]:
    named = {axis for put in inputs.values() for axis in put["shape"]} & set(LENGTHS)
    own = {"factory": f"torch_models.py:{kind}"} if kind.islower() else {"arguments": {"kind": kind}}
    axes = {axis: LENGTHS[axis] for axis in named}
    return {"from": "pytorch", "factory": "torch_models.py:made", "inputs": inputs, "axes": axes, **own, **more}


RIGHT: dict[str, tuple[dict[str, Any], list[str], list[int]]] = {
    "squeezed": (model("Squeezed"), ["output"], []),
    "nested": (model("Nested"), ["logits", "hidden.0", "hidden.1.0"], []),
    "chosen": (model("Nested", outputs={"y": {"take": "hidden.1.0"}, "z": {"take": "0"}}), ["y", "z"], [2, 0]),
    "by-name": (model("Nested", outputs={"hidden.0": None}), ["hidden.0"], [1]),
    "spectrum": (model("Spectrum", STEPS), ["output"], []),
    "nonzero": (model("NonZero"), ["output"], []),
    "counting": (model("Counting"), ["output"], []),
    "double": (model("Double", {"x": {"shape": ["batch", 6], "dtype": "float64"}}), ["output"], []),
    "convolution": (model("Convolution", IMAGE), ["output"], []),
    "recurrent": (model("Recurrent", STEPS), ["output_0", "output_1.0", "output_1.1"], []),
    "time-first": (model("TimeFirst", {"x": {"shape": ["time", "batch", 6]}}), ["output"], []),
    "attention": (model("Attention", WORDS), ["output"], []),
    "scripted": (model("Scripted", STEPS), ["output"], []),
    "bert": (model("bert", TEXT), ["last_hidden_state", "pooler_output"], []),
    "gpt2": (model("gpt2", TEXT, outputs={"logits": None}), ["logits"], []),
}
FIXED = {
    "loop": (model("Loop", STEPS), "torch.export finds that the model's code takes this length for a constant"),
    "threshold": (model("Threshold", STEPS), "a model that left it free computed something else: output output on "),
}
REFUSED = {
    "branch": (
        model("TracedLoop", STEPS),
        "the converted model has lost control flow that depends on the data: torch_",
    ),
    "complex": (model("Complex"), "its output output is complex, and no model of ONNX gives complex numbers"),
    "remembering": (model("Remembering"), "each run changes its buffer calls, on which its output depends, and an"),
    "counted": (model("Counted"), "two runs of the original on the same data differ: output by up to "),
    "special": (model("Special"), "no converter to ONNX knows the operator prims.bessel_j0"),
    "unknown": (
        model("Nested", outputs={"y": {"take": "z"}}),
        "its output y is to be z, and it gives logits, hidden.0",
    ),
    "few": (model("Nested", outputs={"a": None, "b": None}), "it gives 3 outputs (logits, hidden.0, hidden.1.0), and"),
}
UNSEEN = [{"batch": 5, "time": 14, "height": 20, "width": 28}, {"batch": 9, "time": 47 // 2, "height": 32, "width": 8}]


def trial(tmp_path: Path, name: str, given: dict[str, Any], places: list[int] | None = None) -> dict[str, Any]:
    """What the conversion says, with what an independent comparison at unseen lengths gives."""
    (tmp_path / "torch_models.py").write_bytes(MODELS.read_bytes())
    (tmp_path / "ensemble.yaml").write_text(json.dumps({"name": "trial", "models": {name: given}}))
    loaded = read_ensemble(tmp_path / "ensemble.yaml")
    work = ModelWork(tmp_path / "work", name)
    work.make(loaded)
    work.write({"ensemble": spelled(loaded.ensemble), "threads": 1})
    (work.folder / "trial.py").write_text(TRIAL)
    environment = dict(os.environ, PYTHONPATH=f"{work.folder}:{work.folder / 'given'}")
    command = [os.environ.get(VARIABLE, sys.executable), "trial.py", name, json.dumps(places or []), json.dumps(UNSEEN)]
    done = subprocess.run(command, cwd=work.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    said = work.said("convert", Converted)
    assert said is not None
    if not said.failed:
        judged = msgspec.structs.replace(said, tried=with_verdicts(said.tried, said.differences))
        assert not problem_of(judged, loaded.ensemble.models[name], work)
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_a_model_is_right_at_lengths_that_its_report_has_not(tmp_path: Path, name: str) -> None:
    given, names, places = RIGHT[name]
    found = trial(tmp_path, name, given, places)
    assert not found.get("failed") and "fixed" not in found, found
    assert found["names"] == names and found["apart"] < 2e-5


@pytest.mark.parametrize("name", FIXED)
def test_an_axis_that_is_not_proven_has_one_length_and_the_reason_is_said(tmp_path: Path, name: str) -> None:
    given, why = FIXED[name]
    found = trial(tmp_path, name, given)
    assert found["fixed"] == {"time": 10} and found["apart"] < 2e-5
    assert any(each.startswith(f"time stays 10: {why}") for each in found["findings"])
    assert {each["axes"]["batch"] for each in found["tried"]} == {1, 2, 3}


def test_what_has_a_fixed_axis_is_exported_once(tmp_path: Path) -> None:
    """Exports and traces are what takes the time; the tracer's model would keep as many axes, so it is not made."""
    found = trial(tmp_path, "loop", FIXED["loop"][0])
    assert found["fixed"] == {"time": 10} and found["attempts"][1]["failed"] == "its model takes time 10 alone"
    assert found["counts"]["export dynamo"] == 1 and "export" not in found["counts"]
    assert found["counts"]["trace"] <= 4, "the example, and batch and time until each is known"


def test_a_batch_that_stays_is_refused_where_others_are_asked_for(tmp_path: Path) -> None:
    given = model("Loop", {"x": {"shape": [3, "batch", 6]}}, batches=[2, 4])
    found = trial(tmp_path, "loop", given)
    assert found["failed"].startswith("loop: only a model for batch 2 can be made of it, and batches asks for 4: batch")
    assert "batches: [2] and axes: {batch: 2}" in found["remedy"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    given, why = REFUSED[name]
    found = trial(tmp_path, name, given)
    assert found["failed"].startswith(f"{name}: {why}"), found["failed"]
    assert found["remedy"] and "Traceback" not in found["failed"] and len(found["failed"]) < 400
