"""The steps ``convert`` and ``validate``: a model as ONNX, and the proof that it computes the same."""

import os

# What is compared is the model: no accelerator, and no rounding of oneDNN's own.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import contextlib
import importlib

import numpy as np

from . import factory, ties
from .common import GIVEN, RUNS, Cannot, imported, text
from .compare import of_output
from .data import datasets, many_rows, traced
from .reference import computed, differences, outputs_of
from .trials import Trials, told, unproven

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


def changed_by(original):
    """What each run of an original changes, and so what its next run may depend on."""
    return original.changed() if hasattr(original, "changed") else []


def keeping(model, changes, effect):
    """The refusal of a model that remembers."""
    return model.wrong(
        f"each run changes its {', '.join(changes)}, {effect}, and an ONNX model keeps nothing from one run to the "
        "next",
        "take what it keeps as an input, and return its new value as an output",
    )


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


class Job:
    """An original on its way to an ONNX model; ``compared``: the part of the reference that the model was held to."""

    def __init__(self, asked, model, original, record, trials, outputs, opsets):
        self.asked, self.model, self.original, self.record = asked, model, original, record
        self.trials, self.outputs, self.opsets = trials, outputs, opsets
        self.compared, self.findings = trials.kept, list(record["findings"])

    def export(self):
        """Try each exporter of the original until one gives a model that computes the same at all lengths.

        Where none does, the one that keeps the fewest axes at one length is taken.
        """
        model, record, failures, best = self.model, self.record, [], None
        for exporter, make in self.original.exporters():
            attempt = {"exporter": exporter, "failed": ""}
            record["attempts"].append(attempt)
            try:
                self._proven(make)
                if not model.fixed:
                    return
                if best is None or len(model.fixed) < len(best[0]):
                    best = dict(model.fixed), attempt, make
                attempt["failed"] = f"its model takes {_lengths(model.fixed)} alone"
                continue
            except Cannot as why:
                failures.append(why)
            except (MemoryError, OSError) as failure:
                attempt["failed"] = text(f"{type(failure).__name__}: {failure}")
                raise
            except Exception as failure:
                failures.append(self.original.explained(failure))
            attempt["failed"] = text(failures[-1].message.removeprefix(f"{model.name}: "))
        if best:
            # Another exporter has written its own model since, or none.
            best[1]["failed"] = ""
            self._proven(best[2])
            return
        worst = failures[-1] if record.get("differences") else failures[0]
        others = [each["exporter"] for at, each in enumerate(record["attempts"]) if failures[at] is not worst]
        more = f" ({' and '.join(others)} gave no model either)" if others else ""
        raise model.wrong(worst.message.removeprefix(f"{model.name}: ") + more, worst.remedy)

    def _proven(self, make):
        """One exporter's model; axes at whose other lengths it computes something else keep theirs.

        An exporter may have fixed axes itself, where it knows that its model is not for other lengths.
        """
        model, record = self.model, self.record
        for each in ("file", "differences", "fixed"):
            record.pop(each, None)
        model.fix(())
        self.original.ends, self.original.sets = {}, [each[1] for each in self.trials.kept.sets]
        record["findings"] = list(self.findings)
        branches = self._once(make)
        more = unproven(model, record["differences"], self.compared)
        if more and getattr(self.original, "fixes", False):
            wrong = next(each for each in record["differences"] if not each["passed"])
            model.fix({*model.fixed, *more}, f"a model that left it free computed something else: {failure_of(wrong)}")
            branches = self._once(make)
        if model.fixed:
            record["fixed"] = dict(model.fixed)
        refuse_differences(model, record, self.original)
        if branches:
            # No data can prove that a branch which the model no longer has is never taken.
            raise lost(model, branches)
        left = sorted(set(model.data) - {each[0] for each in self.compared.sets})
        record["findings"] += ties.told(record["differences"])
        record["findings"] += [*model.reasons, *(f"{each} has other lengths: not compared" for each in left)]

    def _once(self, make):
        """Written, checked and compared; the branches that its exporter has fixed."""
        from . import checks, onnxfile

        model, (opset, limit) = self.model, self.opsets
        path = model.folder / FILE
        proto, branches = make(path, opset, traced(model, self.asked), self.outputs.all)
        for axis, lengths in self.original.ends.items():
            # Just beyond the lengths for which an exporter knows that its model holds.
            for each in lengths:
                self.trials.attempt({axis: each})
        self.compared = self.trials.kept.within(model)
        if not self.compared.sets:
            raise model.wrong(
                f"only a model that keeps {_lengths(model.fixed)} can be made of it, and no test data are so long",
                "give the lengths of the test data as axes, or data of these lengths",
            )
        # The standard operators come first: a model with too new or unknown ones is not for the checker either.
        checks.check_opset(model, proto, limit, self.asked)
        onnxfile.rename(proto, [each.name for each in model.inputs], self.outputs.all)
        onnxfile.keep_outputs(proto, self.outputs.names)
        onnxfile.free_outputs(proto, [each[2] for each in self.compared.sets])
        onnxfile.tidy(proto)
        onnxfile.save(proto, path, self.asked)
        del proto
        checks.check(path, model, self.asked, limit)
        self.record["file"] = onnxfile.describe(path)
        run = checks.run_of(checks.session(path, model, self.asked), self.outputs.names)
        self.record["differences"] = differences(model, self.compared, run, int(self.asked.get("runs") or RUNS))
        self.record["tried"] = told(model, self.compared, self.trials.refused)
        return branches


def _lengths(axes):
    return ", ".join(f"{axis} {length}" for axis, length in axes.items())


def refuse_differences(model, record, original):
    """Say the first output that is another."""
    wrong = [each for each in record["differences"] if not each["passed"]]
    if not wrong:
        return
    changes = changed_by(original)
    if changes:
        raise keeping(model, changes, "so that what it computes depends on the runs before")
    raise model.wrong(
        f"the converted model computes something else: {failure_of(wrong[0])}"
        + (f" ({len(wrong)} of {len(record['differences'])} comparisons failed)" if len(wrong) > 1 else ""),
        getattr(model.original, "remedy", "find which operator differs, or ")
        + "allow more in the output's tolerance: {absolute, relative, share}",
    )


def failure_of(difference):
    """Output, data, and how far it is away."""
    said = difference.get("wrong") or (
        f"its distribution is {difference['distance']:.3f} away, where chance explains {difference['limit']:.3f}"
        if difference.get("distance") is not None
        else f"{difference['converted']} where the original gives {difference['original']} at {difference['at']}; "
        f"{100 * difference['beyond']:.3g} % of its elements are beyond the tolerance"
    )
    return f"output {difference['output']} on {difference['data']}: {said}"


def lost(model, branches):
    """A branch that the converted model no longer has."""
    return model.wrong(
        f"the converted model has lost control flow that depends on the data: {'; '.join(branches)}",
        "write the branch with torch.where or torch.cond, so that both sides are in the model",
    )
