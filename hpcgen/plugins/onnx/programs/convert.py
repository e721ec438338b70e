"""The steps ``convert`` and ``validate``: a model as ONNX, and the proof that it computes the same."""

import os

# What is compared is the model: no accelerator, and no rounding of oneDNN's own.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import importlib

import numpy as np

from .common import GIVEN, RUNS, Cannot, imported, text
from .compare import of_output
from .data import datasets, probes, traced
from .reference import Reference, computed, differences

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
FILE = "model.onnx"


def begun(model, *rest):
    """The record before anything is known."""
    return {"model": model.name, "origin": model.origin, "attempts": [], "differences": [], "findings": []}


def original_of(asked, model, record):
    """The original, loaded; what it is from goes into the record."""
    for path in filter(None, [model.file, model.factory and model.factory.rpartition(":")[0]]):
        if not (GIVEN / path).exists():
            raise model.wrong(f"{path} is missing", "put it next to the ensemble file")
    imported("onnx", model.origin)
    imported("onnxruntime", model.origin)
    module = importlib.import_module(f".{ORIGINS[model.origin]}", __package__)
    return module.Original(model, asked, record)


def work(asked, model, record):
    """Convert and validate."""
    original = original_of(asked, model, record)
    from . import checks

    checks.check_weights(model, original.weights(), model.file or model.factory)
    found = datasets(model, asked, record["findings"])
    names = settled(model, original, found, record)
    runs = int(asked.get("runs") or RUNS)
    kept = computed(model, names, found, _guarded(model, original), runs)
    check_outputs(model, kept, record)
    model.folder.mkdir(exist_ok=True)
    kept.save(model.folder)
    limit = min(each for each in (model.opset, asked.get("opset"), checks.newest_opset()) if each)
    asked_for = model.opset or min(USUAL, limit)
    export(asked, model, original, record, kept, (min(asked_for, checks.newest_opset()), limit))


def validate(asked, model, record):
    """Compare the model that lies there with the original again."""
    original = original_of(asked, model, record)
    from . import checks, onnxfile

    path = model.folder / FILE
    record["file"] = onnxfile.describe(path)
    names = settled(model, original, datasets(model, asked, record["findings"]), record)
    found, runs = datasets(model, asked, []), int(asked.get("runs") or RUNS)
    kept = computed(model, names, found, _guarded(model, original), runs)
    record["differences"] = differences(model, kept, checks.run_of(checks.session(path, model, asked), names), runs)
    refuse_differences(model, record)


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


def settled(model, original, found, record):
    """Names of the outputs; two runs on the same data tell whether the original is stochastic."""
    run, feeds = _guarded(model, original), found[0][1]
    first, second = run(feeds), run(feeds)
    given = list(original.names or [])
    names = model.names or given or (["output"] if len(first) == 1 else [f"output_{at}" for at in range(len(first))])
    if len(names) != len(first):
        raise model.wrong(
            f"it gives {len(first)} outputs ({', '.join(str(list(np.shape(each))) for each in first)}), and the "
            f"ensemble file names {len(names)}: {', '.join(names)}",
            "name each output in outputs, in their order",
        )
    random = []
    for name, one, two in zip(names, first, second):  # noqa: B905 (Python 3.9)
        apart = of_output(name, found[0][0], np.asarray(one), np.asarray(two), model.tolerance(name))
        if not apart["passed"] or np.shape(one) != np.shape(two):
            random.append(f"{name} by up to {apart.get('largest_absolute', '?')}")
    if random and not model.stochastic:
        causes = original.random_parts()
        raise model.wrong(
            f"two runs of the original on the same data differ: {', '.join(random)}"
            + (f"; it has {', '.join(causes)}" if causes else ""),
            "switch off random layers such as dropout, or write stochastic: true, which compares distributions",
        )
    if model.stochastic and not random:
        record["findings"].append("stochastic: true, but two runs of the original on the same data were equal")
    return names


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


def export(asked, model, original, record, kept, opsets):
    """Try each exporter of the original until one gives a model that computes the same."""
    feeds = traced(model, asked)
    failures = []
    for exporter, make in original.exporters():
        attempt = {"exporter": exporter, "failed": ""}
        record["attempts"].append(attempt)
        for each in ("file", "differences"):
            record.pop(each, None)
        try:
            branches = one_export(asked, model, record, kept, opsets, (make, feeds))
        except Cannot as why:
            failures.append(why)
        except (MemoryError, OSError) as failure:
            attempt["failed"] = text(f"{type(failure).__name__}: {failure}")
            raise
        except Exception as failure:
            failures.append(original.explained(failure))
        else:
            record["findings"] += branches
            try:
                check_branches(asked, model, original, record, kept, branches)
                return
            except Cannot as why:
                failures.append(why)
        attempt["failed"] = text(failures[-1].message.removeprefix(f"{model.name}: "))
    worst = failures[-1] if record.get("differences") else failures[0]
    more = " (both exporters failed)" if len(failures) == 2 else ""
    raise model.wrong(worst.message.removeprefix(f"{model.name}: ") + more, worst.remedy)


def one_export(asked, model, record, kept, opsets, how):
    """One exporter's model: written, checked and compared; what tracing it has fixed."""
    from . import checks, onnxfile

    (opset, limit), (make, feeds) = opsets, how
    path = model.folder / FILE
    proto, branches = make(path, opset, feeds, kept.names)
    # The standard operators come first: a model with too new or unknown ones is not for the checker either.
    checks.check_opset(model, proto, limit, asked)
    onnxfile.rename(proto, [each.name for each in model.inputs], kept.names)
    onnxfile.tidy(proto)
    onnxfile.save(proto, path, asked)
    del proto
    checks.check(path, model, asked, limit)
    record["file"] = onnxfile.describe(path)
    opened = checks.session(path, model, asked)
    try:
        record["differences"] = differences(
            model, kept, checks.run_of(opened, kept.names), int(asked.get("runs") or RUNS)
        )
    except Exception as failure:
        if isinstance(failure, (Cannot, MemoryError, OSError)):
            raise
        raise model.wrong(
            f"ONNX Runtime does not run the converted model: {failure}", "see whether an axis was fixed in tracing"
        ) from failure
    refuse_differences(model, record)
    return branches


def refuse_differences(model, record):
    """Say the first output that is another."""
    wrong = [each for each in record["differences"] if not each["passed"]]
    if not wrong:
        return
    first = wrong[0]
    said = first.get("wrong") or (
        f"its distribution is {first['distance']:.3f} away, where chance explains {first['limit']:.3f}"
        if first.get("distance") is not None
        else f"{first['converted']} where the original gives {first['original']} at {first['at']}; "
        f"{100 * first['beyond']:.3g} % of its elements are beyond the tolerance"
    )
    raise model.wrong(
        f"the converted model computes something else: output {first['output']} on {first['data']}: {said}"
        + (f" ({len(wrong)} of {len(record['differences'])} comparisons failed)" if len(wrong) > 1 else ""),
        "find which operator differs, or allow more in the output's tolerance: {absolute, relative, share}",
    )


def check_branches(asked, model, original, record, kept, branches):
    """Where tracing has fixed branches, compare on data that differ much; they are not kept for variants."""
    if not branches or model.stochastic:
        return
    from . import checks

    more = Reference(kept.names)
    for label, feeds in probes(model, asked):
        try:
            more.sets.append((label, feeds, [np.asarray(each) for each in original.run(feeds)], None))
        except Exception as failure:
            record["findings"].append(text(f"the original does not run on {label}: {failure}"))
    run = checks.run_of(checks.session(model.folder / FILE, model, asked), kept.names)
    try:
        record["differences"] += differences(model, more, run, 1)
    except Exception as failure:
        raise lost(model, branches) from failure
    if not all(each["passed"] for each in record["differences"]):
        raise lost(model, branches)


def lost(model, branches):
    """A branch that the converted model no longer has."""
    return model.wrong(
        f"the converted model has lost control flow that depends on the data: {'; '.join(branches)}",
        "write the branch with torch.where or torch.cond, so that both sides are in the model",
    )
