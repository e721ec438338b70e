"""What the original computes, kept beside its model so that each variant is compared with the same."""

import numpy as np

from . import ties
from .common import NO_MEMORY, Cannot
from .compare import compare, compare_distributions, samples, wrong_output

FILE = "reference.npz"


class Reference:
    """Sets of inputs with what the original gives for them.

    ``names`` of the outputs; ``sets``: for each its label, inputs by name, outputs in their order, and of a stochastic
    model the samples of :func:`compare.samples`, else None. ``label``: name of the output that is one, and
    ``scores`` that decide it, by the label of the set.
    """

    def __init__(self, names, sets=(), label="", scores=None):
        self.names, self.sets, self.label, self.scores = list(names), list(sets), label, scores or {}

    def save(self, folder):
        """Write it beside the model."""
        arrays = {"names": np.array(self.names), "labels": np.array([each[0] for each in self.sets])}
        arrays["label"] = np.array(self.label)
        for at, (label, feeds, outputs, drawn) in enumerate(self.sets):
            arrays.update({f"{at}.input.{name}": value for name, value in feeds.items()})
            arrays.update({f"{at}.output.{name}": outputs[each] for each, name in enumerate(self.names)})
            if label in self.scores:
                arrays[f"{at}.scores"] = self.scores[label]
            if drawn is not None:
                arrays.update({f"{at}.samples.{name}": drawn[each] for each, name in enumerate(self.names)})
        np.savez(folder / FILE, **arrays)

    @classmethod
    def load(cls, folder):
        """What :meth:`save` wrote."""
        with np.load(folder / FILE, allow_pickle=False) as kept:
            made = cls([str(each) for each in kept["names"]], label=str(kept["label"]))
            for at, label in enumerate(kept["labels"]):
                if f"{at}.scores" in kept.files:
                    made.scores[str(label)] = kept[f"{at}.scores"]
                begin = f"{at}.input."
                feeds = {each.removeprefix(begin): kept[each] for each in kept.files if each.startswith(begin)}
                outputs = [kept[f"{at}.output.{name}"] for name in made.names]
                drawn = None
                if any(each.startswith(f"{at}.samples.") for each in kept.files):
                    drawn = [kept[f"{at}.samples.{name}"] for name in made.names]
                made.sets.append((str(label), feeds, outputs, drawn))
        return made

    def within(self, model):
        """The sets in which the axes that a model keeps fixed have that length."""
        return Reference(self.names, [each for each in self.sets if model.takes(each[1])], self.label, self.scores)


def computed(model, names, found, run, runs):
    """The reference of an original: ``found`` is what :func:`data.datasets` gives, ``run`` computes."""
    made = Reference(names)
    for label, feeds in found:
        made.sets.append((label, feeds, *outputs_of(model, names, feeds, run, runs)))
    return made


def outputs_of(model, names, feeds, run, runs):
    """The outputs for some inputs, and of a stochastic model the samples of all runs, else None."""
    if not model.stochastic:
        return [np.asarray(each) for each in run(feeds)], None
    return samples(model, names, lambda: [np.asarray(each) for each in run(feeds)], runs)


def differences(model, kept, run, runs, tolerance=None):
    """What ``run`` computes against the reference: a difference for each set and output."""
    found = []
    for label, feeds, outputs, drawn in kept.sets:
        try:
            other = run(feeds) if drawn is None else samples(model, kept.names, lambda feeds=feeds: run(feeds), runs)
        except Exception as failure:
            if isinstance(failure, (Cannot, MemoryError, OSError)) or any(word in str(failure) for word in NO_MEMORY):
                raise
            found += [wrong_output(name, label, 0, f"the runtime fails: {failure}") for name in kept.names]
            continue
        if drawn is None:
            other, tied = ties.without(model, kept, label, outputs, other, tolerance)
            compared = compare(model, label, outputs, other, tolerance, kept.names)
            found += [dict(each, tied=tied) if tied and each["output"] == kept.label else each for each in compared]
        else:
            found += compare_distributions(model, label, (outputs, drawn), other, kept.names, tolerance)
    return found
