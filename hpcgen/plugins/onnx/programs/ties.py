"""Labels near a tie: where the scores that decide a label are apart by less than they may differ, either is right.

A classifier takes the class with the highest score, and the scores of original and converted model may differ by the
tolerance, as single and double precision do. A label that differs elsewhere is wrong. The scores are those that the
original takes its label from, which need not be the probabilities: some of those end at 0 and 1.
"""

import numpy as np


def without(model, kept, name, outputs, converted, tolerance=None):
    """The converted outputs with the original's label where its own scores say that there is a tie, and how many.

    kept: the :class:`~programs.reference.Reference`, which names the label and has the scores that decide it.
    name: of the set of inputs. outputs, converted: arrays in the order of the outputs.
    tolerance: of a variant, for all outputs; by default that of the label.
    """
    scores = kept.scores.get(name)
    if scores is None or kept.label not in kept.names or len(outputs) != len(converted):
        return converted, 0
    at = kept.names.index(kept.label)
    original, other = np.asarray(outputs[at]), np.asarray(converted[at])
    if original.size != other.size or original.size != len(scores):
        return converted, 0
    other = other.reshape(original.shape)
    differ = (original != other).reshape(-1)
    tied = differ & near(scores, dict(model.tolerance(kept.label), **(tolerance or {})))
    if not tied.any():
        return converted, 0
    changed = list(converted)
    changed[at] = np.where(tied.reshape(original.shape), original, other)
    return changed, int(tied.sum())


def near(scores, limits):
    """For each sample whether its best two scores, or its only one and 0, may change places within the tolerance."""
    scores = scores.reshape(len(scores), -1)
    slack = limits["absolute"] + limits["relative"] * np.abs(scores).max(axis=1)
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0]) <= slack
    best = np.sort(scores, axis=1)[:, -2:]
    # Each of the two may move.
    return best[:, 1] - best[:, 0] <= 2 * slack


def told(differences):
    """What the user should know of labels that differ at ties."""
    return [
        f"{each['tied']} of {each['elements']} values of {each['output']} differ on {each['data']}, where the scores "
        "that decide them are closer to each other than the tolerance: in single precision either label is right"
        for each in differences
        if each.get("tied")
    ]
