"""An original on its way to an ONNX model: exporters one after the other, and what each gives held to the original."""

import shutil

from . import ties
from .common import RUNS, Cannot, lengths_text, text
from .data import traced
from .reference import differences
from .trials import told, unproven

FILE = "model.onnx"
BEST = ".best"
"""The folder of the best model so far, below that of the model."""
MADE = ("file", "differences", "fixed", "tried", "findings")
"""What a record says of one exporter's model."""


class Job:
    """An original on its way to an ONNX model; ``compared``: the part of the reference that the model was held to."""

    def __init__(self, asked, model, original, record, trials, outputs, opsets):
        self.asked, self.model, self.original, self.record = asked, model, original, record
        self.trials, self.outputs, self.opsets = trials, outputs, opsets
        self.compared, self.findings = trials.kept, list(record["findings"])
        self.again = []  # exporters that may make a model with fixed axes

    def export(self):
        """Try each exporter of the original until one gives a model that computes the same at all lengths.

        Where none does, the one that keeps the fewest axes at one length is taken. Exporters that fail with all named
        axes free are tried with all but the batch fixed.
        """
        failures, best, record = [], None, self.record
        for exporter, make in self.original.exporters():
            best = self._tried(exporter, make, best, failures)
            if best and not best["fixed"]:
                break
        attempts = list(record["attempts"])
        worst = failures[-1] if failures and record.get("differences") else next(iter(failures), None)
        if not best and self.again:
            best = self._with_fixed(str(failures[0].message).removeprefix(f"{self.model.name}: "))
        if best:
            self._take(best)
            return
        record["attempts"] = attempts
        others = [each["exporter"] for each, why in zip(attempts, failures) if why is not worst]  # noqa: B905
        more = f" ({' and '.join(others)} gave no model either)" if others else ""
        raise self.model.wrong(worst.message.removeprefix(f"{self.model.name}: ") + more, worst.remedy)

    def _with_fixed(self, why):
        """What an exporter makes where all axes but the batch have one length; None if nothing."""
        named, best = set(self.model.axes), None
        fixed = named - {"batch"} or named, f"no exporter makes a model for other lengths of it: {why}"
        for exporter, make in list(self.again):
            best = best or self._tried(exporter, make, None, [], fixed)
        return best

    def _tried(self, exporter, make, best, failures, fixed=((),)):
        """The better one of ``best`` and what this exporter gives, each with what the record says of it."""
        model, record = self.model, self.record
        attempt = {"exporter": exporter, "failed": ""}
        record["attempts"].append(attempt)
        self.original.fewest = len(best["fixed"]) if best else None
        try:
            self._proven(make, fixed)
            if best is None or len(model.fixed) < len(best["fixed"]):
                if best:
                    best["attempt"]["failed"] = f"its model takes {lengths_text(best['fixed'])} alone"
                return self._set_aside(attempt)
            failures.append(model.wrong(f"its model takes {lengths_text(model.fixed)} alone"))
        except Cannot as why:
            failures.append(why)
        except (MemoryError, OSError) as failure:
            attempt["failed"] = text(f"{type(failure).__name__}: {failure}")
            raise
        except Exception as failure:
            failures.append(self.original.explained(failure))
            if getattr(self.original, "fixes", False) and self.original.of_lengths(failure):
                self.again.append((exporter, make))
        attempt["failed"] = text(failures[-1].message.removeprefix(f"{model.name}: "))
        return best

    def _set_aside(self, attempt):
        """An exporter's model, and what the record says of it, while another is tried in its place."""
        place = self.model.folder / BEST
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for each in self.model.folder.glob(f"{FILE}*"):
            each.rename(place / each.name)
        said = {each: self.record.get(each) for each in MADE}
        return {"attempt": attempt, "fixed": dict(self.model.fixed), "compared": self.compared, "said": said}

    def _take(self, best):
        """Let this model be the result, whatever was tried after it."""
        folder = self.model.folder
        for each in folder.glob(f"{FILE}*"):
            each.unlink()
        for each in (folder / BEST).iterdir():
            each.rename(folder / each.name)
        (folder / BEST).rmdir()
        self.compared = best["compared"]
        self.record.update({name: value for name, value in best["said"].items() if value is not None})
        self.model.fix(best["fixed"])
        if not best["fixed"]:
            self.record.pop("fixed", None)

    def _proven(self, make, fixed):
        """One exporter's model; axes at whose other lengths it computes something else keep theirs.

        An exporter may have fixed axes itself, where it knows that its model is not for other lengths.

        ``fixed``: axes that keep their lengths from the beginning, and why.
        """
        model, record = self.model, self.record
        for each in ("file", "differences", "fixed"):
            record.pop(each, None)
        model.fix(())
        model.fix(*fixed)
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
        self._refuse_batches()
        left = sorted(set(model.data) - {each[0] for each in self.compared.sets})
        record["findings"] += ties.told(record["differences"])
        record["findings"] += [*model.reasons, *(f"{each} has other lengths: not compared" for each in left)]

    def _refuse_batches(self):
        """Refuse a model for one length of the batch where the ensemble file asks for another."""
        model = self.model
        other = sorted(set(model.batches) - {model.fixed.get("batch")})
        if "batch" in model.fixed and other:
            asked, one = ", ".join(map(str, other)), model.batches[0]
            raise model.wrong(
                f"only a model for batch {model.fixed['batch']} can be made of it, and batches asks for {asked}: "
                + "; ".join(model.reasons),
                "write the model so that its code takes the batch for no number, or convert it for one: "
                f"batches: [{one}] and axes: {{batch: {one}}}",
            )

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
                f"only a model that keeps {lengths_text(model.fixed)} can be made of it, and no test data are so long",
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


def refuse_differences(model, record, original):
    """Say the first output that is another."""
    wrong = [each for each in record["differences"] if not each["passed"]]
    if not wrong:
        return
    changes = changed_by(original)
    if changes:
        raise keeping(model, changes, "so its results depend on previous runs")
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
