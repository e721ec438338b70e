"""The steps ``convert`` and ``validate``: a model as ONNX, and the proof that it computes the same."""

import os

# What is compared is the model: no accelerator, and no rounding of oneDNN's own.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import contextlib
import importlib

import numpy as np

from . import factory
from .common import GIVEN, RUNS, Cannot, imported, text
from .compare import of_output
from .data import datasets, many_rows
from .exporting import FILE, Job, changed_by, keeping, refuse_differences
from .reference import computed, differences, outputs_of
from .trials import Trials, told

ORIGINS = {
    "pytorch": "origin_pytorch",
    "torch-export": "origin_pytorch",
    "tensorflow": "origin_tensorflow",
    "keras": "origin_tensorflow",
    "sklearn": "origin_sklearn",
    "onnx": "origin_onnx",
}
USUAL = 20
"""The opset where no other is asked for: every ONNX Runtime since 1.17 takes it, and newer ones lack kernels for parts
of the newest (seen with 1.32: none for QuantizeLinear of opset 28 on the CPU)."""


def begun(model, *rest):
    """The record before anything is known."""
    return {"model": model.name, "origin": model.origin, "attempts": [], "differences": [], "findings": []}


def original_of(asked, model, record):
    """The original, loaded; what it is from goes into the record."""
    for path in filter(None, [model.file, model.converters, model.factory and model.factory.rpartition(":")[0]]):
        if not (GIVEN / path).exists():
            raise model.wrong(f"{path} is missing", "put it next to the ensemble file")
    imported("onnx", model.origin)
    imported("onnxruntime", model.origin)
    origin = importlib.import_module(f".{ORIGINS[model.origin]}", __package__)
    if model.converters:
        factory.module(model, model.converters)
    original = origin.Original(model, asked, record)
    original.versions = record["versions"]
    return original


def work(asked, model, record):
    """Convert and validate."""
    original = model.original = original_of(asked, model, record)
    from . import checks

    checks.check_weights(model, original.weights(), model.file or model.factory)
    outputs, trials = referred(asked, model, original, record)
    kept = trials.kept
    check_outputs(model, kept, record)
    model.folder.mkdir(exist_ok=True)
    limit = min(each for each in (model.opset, asked.get("opset"), checks.newest_opset()) if each)
    asked_for = model.opset or min(USUAL, limit)
    job = Job(asked, model, original, record, trials, outputs, (min(asked_for, checks.newest_opset()), limit))
    job.export()
    job.compared.save(model.folder)


def referred(asked, model, original, record):
    """The :class:`Outputs` of the original, and what it computes on the user's data and at other lengths."""
    found, runs = datasets(model, asked, record["findings"]), int(asked.get("runs") or RUNS)
    run = _guarded(model, original)
    outputs = settled(model, original, found, record)

    def chosen(feeds):
        return outputs.of(run(feeds))

    def answers(feeds):
        return outputs_of(model, outputs.names, feeds, chosen, runs)

    kept = computed(model, outputs.names, found, chosen, runs)
    for label, feeds in many_rows(model, asked) if model.origin == "sklearn" else ():
        with contextlib.suppress(Cannot):  # The original takes no such values.
            kept.sets.append((label, feeds, *answers(feeds)))
    trials = Trials(model, asked, kept, answers)
    trials.all()
    record["tried"] = told(model, kept, trials.refused)
    if model.origin == "sklearn" and original.deciding:
        kept.label = outputs.all[0]
        kept.scores = {label: original.deciding(feeds) for label, feeds, *_ in kept.sets}
    return outputs, trials


def validate(asked, model, record):
    """Compare the model that lies there with the original again."""
    original = original_of(asked, model, record)
    from . import checks, onnxfile

    path = model.folder / FILE
    record["file"] = onnxfile.describe(path)
    outputs, trials = referred(asked, model, original, record)
    run = checks.run_of(checks.session(path, model, asked), outputs.names)
    record["differences"] = differences(model, trials.kept, run, int(asked.get("runs") or RUNS))
    refuse_differences(model, record, original)


def _guarded(model, original):
    """The original's run; what goes wrong in it is said with the shapes that it was given."""

    def run(feeds):
        try:
            return original.run(feeds)
        except (Cannot, MemoryError, OSError):
            raise
        except Exception as failure:
            shapes = ", ".join(f"{name} {value.dtype.name} {list(value.shape)}" for name, value in feeds.items())
            raise model.wrong(
                f"the original fails on {shapes}: {type(failure).__name__}: {failure}",
                "correct shape, dtype, low and high of its inputs in the ensemble file, or the model",
            ) from failure

    return run


class Outputs:
    """The outputs that are converted: ``names``, ``places`` among ``all``, the names of what the original gives."""

    def __init__(self, model, own, count):
        self.all = list(own) or (["output"] if count == 1 else [f"output_{at}" for at in range(count)])
        self.names = model.names or self.all
        take = {name: (model.outputs.get(name) or {}).get("take") or "" for name in self.names}
        # By their own names, or by what the ensemble file says that they are.
        if any(take.values()) or set(self.names) <= set(self.all):
            self.places = [self._place(model, name, take[name] or name) for name in self.names]
        elif len(self.names) == count:
            self.places = list(range(count))
        else:
            raise model.wrong(
                f"it gives {count} outputs ({', '.join(self.all)}), and the ensemble file names {len(self.names)}: "
                f"{', '.join(self.names)}",
                "name each of them in outputs, in their order, or say which ones with take: NAME or take: NUMBER",
            )
        named = dict(zip(self.places, self.names))  # noqa: B905 (Python 3.9)
        taken = set(self.names)
        for at, each in enumerate(self.all):
            named.setdefault(at, each if each not in taken else f"{each}__inner")
        self.all = [named[at] for at in range(count)]

    def _place(self, model, name, take):
        if take in self.all:
            return self.all.index(take)
        if take.isdigit() and int(take) < len(self.all):
            return int(take)
        raise model.wrong(
            f"its output {name} is to be {take}, and it gives {', '.join(self.all)}",
            f"take: one of these names, or a number from 0 to {len(self.all) - 1}",
        )

    def of(self, given):
        """Those among all."""
        return [np.asarray(given[at]) for at in self.places]


def settled(model, original, found, record):
    """The :class:`Outputs`; two runs on the same data tell whether the original is stochastic."""
    run, feeds = _guarded(model, original), found[0][1]
    first, second = run(feeds), run(feeds)
    outputs = Outputs(model, original.names or (), len(first))
    first, second = outputs.of(first), outputs.of(second)
    for name, each in zip(outputs.names, first):  # noqa: B905 (Python 3.9)
        if each.dtype.kind == "c":
            raise model.wrong(
                f"its output {name} is complex, and no model of ONNX gives complex numbers",
                "return its real and imaginary parts, as torch.view_as_real and numpy.stack give them",
            )
    random = {}
    for name, one, two in zip(outputs.names, first, second):  # noqa: B905 (Python 3.9)
        apart = of_output(name, found[0][0], one, two, model.tolerance(name))
        if not apart["passed"] or np.shape(one) != np.shape(two):
            random[name] = f"{name} by up to {apart.get('largest_absolute', '?')}"
    changes = changed_by(original)
    if changes and random:
        raise keeping(model, changes, f"on which its {', '.join(random)} depends")
    if changes:
        record["findings"].append(f"each run of the original changes its {', '.join(changes)}; the ONNX model does not")
    if random and not model.stochastic:
        causes = original.random_parts()
        raise model.wrong(
            f"two runs of the original on the same data differ: {', '.join(random.values())}"
            + (f"; it has {', '.join(causes)}" if causes else ""),
            "switch off random layers such as dropout, and what it keeps from one run to the next; or write "
            "stochastic: true, which compares distributions",
        )
    if model.stochastic and not random:
        record["findings"].append("stochastic: true, but two runs of the original on the same data were equal")
    return outputs


def check_outputs(model, kept, record):
    """Say what the original itself computes that is no number."""
    for label, _, outputs, _ in kept.sets:
        for name, each in zip(kept.names, outputs):  # noqa: B905 (Python 3.9)
            if each.dtype.kind == "f" and not np.isfinite(each).all():
                away = int((~np.isfinite(each)).sum())
                if away == each.size and not np.isinf(each).all():
                    raise model.wrong(
                        f"all values of the original's output {name} on {label} are NaN, which proves nothing",
                        "give test data without NaN, on which the original computes numbers",
                    )
                record["findings"].append(
                    text(f"{label}: {away} of {each.size} values of the original's output {name} are NaN or infinite")
                )
