"""Whether converted models compute what their originals do: original and ONNX file side by side, without hpcgen.

    python judge.py ENSEMBLE.yaml CONVERTED [MODEL…]

CONVERTED is what ``hpcgen onnx convert -o`` wrote, or that folder with ``.failed`` at its end. Of hpcgen only
``report.json`` is read, for the reasons of what was refused. ``expected.yaml`` says what has to come of each model.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import json
import os
import re
import sys
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime
import yaml

HERE = Path(__file__).resolve().parent
LENGTHS = {
    "batch": [5, 1, 16, 3, 9, 2, 7, 11],
    "rows": [5, 1, 160, 37, 9, 2, 300, 64],
    "": [7, 12, 1, 19, 4, 33, 2, 9],
}
"""Of the axis ``batch``, which is ``rows`` of a table for estimators, and of others, of which a model's second begins
one further on, so that they differ."""
VALUES = ("range", "normal", "large", "ties")
ABSOLUTE, RELATIVE = 1e-4, 1e-3
"""The first is of the largest value of an output, if that is more than one."""
TIE = 1e-5
"""Between the best two scores of a row: whoever rounds in another way may give the other label."""
UPSTREAM = re.compile(r"\b\w*(Error|Exception|Failure)\b(:|\()|Traceback|\[ONNXRuntimeError\]")


@dataclasses.dataclass
class Verdict:
    """What came of a model: ``right``, ``refused`` or ``wrong``, and why."""

    model: str
    what: str
    why: str = ""
    notes: list = dataclasses.field(default_factory=list)
    as_expected: bool = True


def main(ensemble, converted, only=()):
    """The verdicts on the models of an ensemble file."""
    asked = yaml.safe_load(ensemble.read_text())["models"]
    expected = (yaml.safe_load((HERE / "expected.yaml").read_text()) or {}).get(ensemble.name) or {}
    report = json.loads((converted / "report.json").read_text())["models"]
    sys.path.insert(0, str(ensemble.parent))
    found = []
    for name, model in asked.items():
        if only and name not in only:
            continue
        if name not in report:
            found.append(Verdict(name, "missing", "not in the report", as_expected=False))
            continue
        # In what a failed conversion left, each model has the folder that it was worked on in.
        places = [converted / name / "model.onnx", converted / name / name / "model.onnx"]
        path = next((each for each in places if each.exists()), places[0])
        verdict = judge(name, model, expected.get(name) or {}, report[name], path)
        found.append(verdict)
        print(line(verdict), flush=True)
    return found


def line(verdict):
    notes = "".join(f"; {each}" for each in verdict.notes)
    return f"{'  ' if verdict.as_expected else '! '}{verdict.what:8}{verdict.model}: {verdict.why}{notes}"


def judge(name, model, expected, reported, path):
    failed = reported["converted"].get("failed")
    if failed:
        remedy = reported["converted"].get("remedy", "")
        notes = [f"→ {remedy}" if remedy else "POOR: no remedy"]
        if UPSTREAM.search(failed) or len(failed) > 600:
            notes.append("POOR: upstream's own words")
        reason = expected.get("refused")
        fits = reason is not None and re.search(reason, f"{failed} {remedy}") is not None
        return Verdict(name, "refused", failed, notes, fits)
    try:
        problems, notes = compared(name, model, expected, path)
    except Exception:
        return Verdict(name, "wrong", traceback.format_exc().strip().splitlines()[-1], as_expected=False)
    if problems:
        return Verdict(name, "wrong", f"{problems[0]} ({len(problems)} findings)", notes, as_expected=False)
    return Verdict(name, "right", "", notes)


def compared(name, model, expected, path):
    """What is wrong, and what is worth a note."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    onnx.checker.check_model(str(path))
    fixed = fixed_axes(model, session)
    notes = [f"axis {axis} fixed at {length}" for axis, length in fixed.items()]
    original = Original(model)
    problems, ran, worst = [], 0, 0.0
    for number, (sizes, values) in enumerate(plan(model, expected, fixed)):
        feeds = made(model, sizes, values, 4000 + number)
        said = f"{', '.join(f'{axis} {length}' for axis, length in sizes.items())}, {values}"
        names = [each.name for each in session.get_outputs()]
        try:
            wanted = original.run(feeds, names)
        except Exception as failure:
            notes.append(f"the original does not run on {said}: {type(failure).__name__}")
            continue
        ran += 1
        try:
            given = session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
        except Exception as failure:
            problems.append(f"{said}: ONNX Runtime fails: {str(failure)[:150]}")
            continue
        if len(wanted) != len(given):
            problems.append(f"{said}: {len(given)} outputs of {len(wanted)}")
            continue
        ties = original.ties(feeds)
        for at, (output, theirs, ours) in enumerate(zip(names, wanted, given, strict=True)):
            wrong, apart = difference(theirs, ours, expected.get("tolerance"), ties if at == 0 else None)
            worst = max(worst, apart)
            if wrong == "tie":
                notes.append(f"{said}: {output} differs where two scores tie")
            elif wrong:
                problems.append(f"{said}: {output} {wrong}")
    if ran < 3:
        problems.append(f"the original ran on {ran} sets only")
    return problems, [f"{ran} sets, {worst:.1e}", *dict.fromkeys(notes)]


def fixed_axes(model, session):
    """Axes that have a name in the ensemble file and a length in the ONNX file."""
    found = {}
    shapes = {each.name: each.shape for each in session.get_inputs()}
    for name, put in model["inputs"].items():
        for asked, there in zip(put["shape"], shapes[name], strict=True):
            if not str(asked).isdecimal() and isinstance(there, int):
                found[asked] = there
    return found


def plan(model, expected, fixed):
    """Lengths of all axes, and the kind of values: each kind at two sets of lengths."""
    axes = dict.fromkeys(
        str(each) for put in model["inputs"].values() for each in put["shape"] if not str(each).isdecimal()
    )
    kinds = expected.get("values") or VALUES
    lengths, others = {}, 0
    for axis in axes:
        own = (expected.get("axes") or {}).get(axis)
        known = "rows" if axis == "batch" and model["from"] == "sklearn" else axis
        listed = own or LENGTHS.get(known) or LENGTHS[""][others:] + LENGTHS[""][:others]
        others += axis != "batch"
        lengths[axis] = [fixed[axis]] if axis in fixed else listed
    for number in range(8):
        yield {axis: each[number % len(each)] for axis, each in lengths.items()}, kinds[number % len(kinds)]


def made(model, sizes, kind, seed):
    """Values of each input, reproducible."""
    source = np.random.default_rng(seed)
    feeds = {}
    for name, put in model["inputs"].items():
        shape = [int(each) if str(each).isdecimal() else sizes[each] for each in put["shape"]]
        low, high, dtype = put.get("low", 0), put.get("high", 1), put.get("dtype", "float32")
        if dtype == "string":
            words = np.array(model_words(model, name), object)
            feeds[name] = source.choice(words, shape)
        elif dtype == "bool":
            feeds[name] = source.random(shape) < 0.4
            feeds[name][:, 0] = False
        elif dtype.startswith("float"):
            feeds[name] = numbers(source, shape, kind, low, high).astype(dtype)
        else:
            feeds[name] = source.integers(int(low), max(int(high), int(low) + 1), shape).astype(dtype)
    return feeds


def numbers(source, shape, kind, low, high):
    if kind == "range":
        return low + (high - low) * source.random(shape)
    if kind == "normal":
        return source.normal(0, 1, shape)
    if kind == "large":
        return source.normal(0, 40, shape)
    if kind == "missing":
        drawn = low + (high - low) * source.random(shape)
        return np.where(source.random(shape) < 0.2, np.nan, drawn)
    # Quarters, of which many are equal, zero among them.
    return np.round((low + (high - low) * source.random(shape)) * 4) / 4


def model_words(model, name):
    module = importlib.import_module(model["factory"].partition(".py:")[0])
    return module.WORDS[name]


class Original:
    """The original of a model, by its framework's own means."""

    def __init__(self, model):
        self.model = model
        file, function = model["factory"].split(".py:")
        self.made = getattr(importlib.import_module(file), function)(**model.get("arguments", {}))
        self.framework = model["from"]

    def run(self, feeds, names):
        """Outputs as arrays, in the order of the ONNX file's, which has these names."""
        return getattr(self, f"_{self.framework}", self._sklearn)(feeds, names)

    def _pytorch(self, feeds, names):
        import torch

        # A module of its own for each run: no call sees what another has left.
        module = copy.deepcopy(self.made).eval()
        with torch.no_grad():
            result = module(*[torch.from_numpy(each.copy()) for each in feeds.values()])
        outputs = list(flat(result))
        named = isinstance(result, dict) and set(names) <= set(result)
        return [np.asarray(each) for each in ([result[name] for name in names] if named else outputs)]

    def _keras(self, feeds, names):
        import tensorflow as tf

        given = [tf.constant(each) for each in feeds.values()]
        wanted = [each.name for each in getattr(self.made, "inputs", None) or []]
        if sorted(wanted) == sorted(feeds):
            given = [tf.constant(feeds[name]) for name in wanted]
        result = self.made(given[0] if len(given) == 1 else given, training=False)
        if isinstance(result, dict) and set(names) <= set(result):
            return [np.asarray(result[name]) for name in names]
        return [np.asarray(each) for each in tf.nest.flatten(result)]

    def _sklearn(self, feeds, names):
        table = self.table(feeds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [dense(self.method(name)(table)) for name in names]

    def table(self, feeds):
        if len(feeds) == 1:
            only = next(iter(feeds.values()))
            return only.reshape(-1) if getattr(self.made, "takes_texts", False) else only
        if hasattr(self.made, "feature_names_in_"):
            import pandas

            return pandas.DataFrame({name: each.reshape(-1) for name, each in feeds.items()})
        return np.concatenate(list(feeds.values()), axis=1)

    def method(self, name):
        """The method of an estimator that gives what an output of this name has."""
        for known in ("predict_proba", "decision_function", "score_samples", "transform", "predict"):
            if name == known:
                return getattr(self.made, known)
        if name.startswith("prob"):
            return self.made.predict_proba
        if name.startswith("scores"):
            return getattr(self.made, "decision_function", None) or self.made.transform
        if name.startswith("std"):
            return lambda table: self.made.predict(table, return_std=True)[1]
        return getattr(self.made, "predict", None) or self.made.transform

    def ties(self, feeds):
        """Of a classifier the rows whose best two scores are as good as equal; None of anything else."""
        made = self.made
        if self.framework in ("pytorch", "keras") or not hasattr(made, "predict"):
            return None
        # Where there are both, it is the function that decides.
        scores = getattr(made, "decision_function", None) or getattr(made, "predict_proba", None)
        if scores is None:
            return None
        scores = np.asarray(scores(self.table(feeds)))
        if scores.ndim == 1:
            return np.abs(scores) < TIE
        if scores.ndim != 2 or scores.shape[1] < 2:
            return None
        best = np.sort(scores, axis=1)
        return best[:, -1] - best[:, -2] < TIE


def flat(result):
    """The tensors in whatever a module gives, in their order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for each in result:
            if each is not None:
                yield from flat(each)
    else:
        yield result


def dense(result):
    return np.asarray(result.toarray() if hasattr(result, "toarray") else result)


def difference(theirs, ours, tolerance, ties):
    """What is wrong with an output, "" if nothing, "tie" if labels differ at ties alone; and the largest difference."""
    ours = np.asarray(ours)
    if np.squeeze(theirs).shape != np.squeeze(ours).shape:
        return f"has the shape {list(ours.shape)} and not {list(theirs.shape)}", 0.0
    theirs, ours = np.squeeze(theirs), np.squeeze(ours)
    if theirs.dtype.kind not in "fc" or ours.dtype.kind not in "fc":
        kinds = theirs.dtype.kind in "iub" and ours.dtype.kind in "iubf"
        apart = np.atleast_1d(theirs != ours if kinds else theirs.astype(str) != ours.astype(str))
        if not apart.any():
            return "", 0.0
        if ties is not None and ties.shape == apart.shape and not (apart & ~ties).any():
            return "tie", 0.0
        at = tuple(int(each) for each in np.argwhere(apart)[0])
        said = f"is {np.atleast_1d(ours)[at]} and not {np.atleast_1d(theirs)[at]} at {list(at)}"
        return f"{said}, {apart.sum()} of {apart.size}", 0.0
    theirs, ours = np.atleast_1d(theirs.astype("f8")), np.atleast_1d(ours.astype("f8"))
    same = (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(theirs - ours))
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    limit = (tolerance or ABSOLUTE) * scale + RELATIVE * np.abs(np.where(np.isfinite(theirs), theirs, 0))
    beyond = ~(apart <= limit)
    largest = float(np.nanmax(np.where(np.isfinite(apart), apart, 0))) / scale if apart.size else 0.0
    if not beyond.any():
        return "", largest
    at = tuple(
        int(each) for each in np.unravel_index(int(np.argmax(np.where(np.isnan(apart), np.inf, apart))), apart.shape)
    )
    return f"is {ours[at]:.6g} and not {theirs[at]:.6g} at {list(at)}, {beyond.sum()} of {beyond.size}", largest


def counts(found):
    """How many of each kind."""
    kinds = ("right", "refused", "wrong", "missing")
    said = ", ".join(f"{sum(each.what == kind for each in found)} {kind}" for kind in kinds)
    return f"{len(found)} models: {said}; {sum(not each.as_expected for each in found)} not as expected"


if __name__ == "__main__":
    verdicts = main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:])
    print(counts(verdicts))
    sys.exit(any(not each.as_expected for each in verdicts))
