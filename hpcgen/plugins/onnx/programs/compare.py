"""How far what a converted model computes is from the original: element by element, or as distributions."""

import math
import zlib

import numpy as np

from .common import number, text

PICKED = 100
"""Elements of an output of a stochastic model whose distributions are compared."""
CHANCE = 1e-4
"""How often equal distributions of one output may be taken for different ones."""


def compare(model, label, originals, converted, tolerance=None, names=None):
    """A difference for each output.

    label: what the inputs are. originals, converted: arrays in the order of the outputs.
    tolerance: of a variant, for all outputs; by default each output has its own.
    names: of the outputs, where the model's record has none.
    """
    names = names or model.names
    if len(originals) != len(converted):
        wrong = f"{len(converted)} outputs where the original gives {len(originals)}"
        return [wrong_output(name, label, 0, wrong) for name in names]
    found = []
    for at, name in enumerate(names):
        limits = dict(model.tolerance(name), **(tolerance or {}))
        explicit = bool(tolerance or model.outputs.get(name))
        found.append(of_output(name, label, originals[at], converted[at], limits, explicit))
    return found


def of_output(name, label, original, converted, limits, explicit=False):
    """The difference of one output; whole numbers are compared exactly, unless a tolerance is said for it."""
    original, converted = np.asarray(original), np.asarray(converted)
    wrong = misfit(original, converted)
    if wrong:
        return wrong_output(name, label, int(original.size), wrong)
    more = shapes_of(original, converted)
    converted = converted.reshape(original.shape)
    if not original.size:
        return _difference(name, label, 0, **more)
    if original.dtype.kind not in "fiub":
        return dict(_of_words(name, label, original, converted, limits), **more)
    exact = original.dtype.kind in "iub" and not explicit
    absolute, relative = (0.0, 0.0) if exact else (limits["absolute"], limits["relative"])
    return dict(_of_numbers(name, label, original, converted, absolute, relative, limits["share"]), **more)


def misfit(original, converted):
    """Why two outputs cannot be compared, "" if they can."""
    if original.shape != converted.shape and not shapes_of(original, converted):
        return f"shape {list(converted.shape)} where the original gives {list(original.shape)}"
    if (original.dtype.kind in "fiub") != (converted.dtype.kind in "fiub"):
        return f"type {converted.dtype} where the original gives {original.dtype}"
    return ""


def shapes_of(original, converted):
    """What is said of shapes that differ by axes of length one alone: their elements are in one order."""
    one, two = list(original.shape), list(converted.shape)
    if one == two or [each for each in one if each != 1] != [each for each in two if each != 1]:
        return {}
    return {"shapes": f"shape {two} where the original gives {one}"}


def _difference(name, label, elements, **more):
    return dict({"output": name, "data": text(label), "elements": elements, "passed": True}, **more)


def wrong_output(name, label, elements, wrong):
    return _difference(name, label, elements, wrong=text(wrong), passed=False)


def _of_words(name, label, original, converted, limits):
    beyond = float(np.mean(original != converted))
    found = _difference(name, label, int(original.size), beyond=beyond, passed=beyond <= limits["share"])
    if beyond:
        at = np.argwhere(original != converted)[0]
        found["at"] = [int(each) for each in at]
        found["wrong"] = text(f"{converted[tuple(at)]} where the original gives {original[tuple(at)]}")
    return found


def _of_numbers(name, label, original, converted, absolute, relative, share):
    # What is large in a copy as float64 is compared in parts of its own array, as outputs can be of gigabytes.
    a, b = (np.atleast_1d(each.astype(np.float64)) for each in (converted, original))
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        excess = apart - (absolute + relative * np.where(np.isfinite(b), np.abs(b), 0.0))
        ratio = apart / np.abs(b)
    over = ~(excess <= 0)
    worst = np.where(np.isnan(excess), np.inf, excess)
    at = np.unravel_index(int(np.argmax(worst)), worst.shape)
    ratio = ratio[(b != 0) & np.isfinite(b)]
    beyond = float(np.mean(over))
    return _difference(
        name,
        label,
        int(b.size),
        largest_absolute=number(_largest(apart)),
        largest_relative=number(_largest(ratio)),
        at=[int(each) for each in at][: original.ndim],
        original=number(b[at]),
        converted=number(a[at]),
        beyond=beyond,
        passed=beyond <= share,
    )


def _largest(values):
    if not values.size:
        return 0.0
    return math.nan if np.isnan(values).any() else values.max()


def picked(model, name, size):
    """Which elements of an output of a stochastic model are looked at."""
    if size <= PICKED:
        return np.arange(size)
    source = np.random.default_rng(zlib.crc32(f"{model.name} {name}".encode()))
    return np.sort(source.choice(size, PICKED, replace=False))


def sample(model, names, outputs):
    """Of each output of one run: the picked elements, and the mean of all."""
    made = []
    for name, each in zip(names, outputs):  # noqa: B905 (Python 3.9)
        flat = np.asarray(each).reshape(-1).astype(np.float64)
        made.append(np.append(flat[picked(model, name, flat.size)], flat.mean() if flat.size else 0.0))
    return made


def samples(model, names, run, runs):
    """The outputs of the first run, and for each output what :func:`sample` gives in each of ``runs`` runs."""
    first, collected = None, []
    for _ in range(runs):
        outputs = run()
        first = outputs if first is None else first
        collected.append(sample(model, names, outputs))
    return first, [np.stack([each[at] for each in collected]) for at in range(len(first))]


def compare_distributions(model, label, original, converted, names=None, tolerance=None):
    """A difference for each output of a stochastic model: each a pair of what :func:`samples` gives.

    Of each picked element, and of the mean of the output, the largest distance of the distribution functions of the
    runs, where values within the tolerance count as equal. The limit is Kolmogorov's and Smirnov's for two samples,
    divided among the elements (Bonferroni).
    """
    found = []
    for at, name in enumerate(names or model.names):
        shapes = np.asarray(original[0][at]), np.asarray(converted[0][at])
        wrong = misfit(*shapes)
        if wrong:
            found.append(wrong_output(name, label, int(shapes[0].size), wrong))
            continue
        limits = dict(model.tolerance(name), **(tolerance or {}))
        compared = of_samples(name, label, int(shapes[0].size), original[1][at], converted[1][at], limits)
        found.append(dict(compared, **shapes_of(*shapes)))
    return found


def of_samples(name, label, elements, original, converted, limits):
    """The difference of the distributions of one output: arrays of runs by elements."""
    columns = original.shape[1]
    count = original.shape[0] * converted.shape[0] / (original.shape[0] + converted.shape[0])
    limit = min(1.0, math.sqrt(-math.log(CHANCE / columns / 2) / 2 / count))
    apart = [distance(original[:, each], converted[:, each], limits) for each in range(columns)]
    worst = int(np.argmax(apart))
    return _difference(
        name,
        label,
        elements,
        largest_absolute=number(np.abs(original.mean(0) - converted.mean(0)).max()),
        original=number(original[:, worst].mean()),
        converted=number(converted[:, worst].mean()),
        distance=apart[worst],
        limit=limit,
        passed=apart[worst] <= limit,
    )


def distance(original, converted, limits):
    """The largest distance of two distribution functions, where the tolerance moves neither."""
    if not (np.isfinite(original).all() and np.isfinite(converted).all()):
        return 1.0
    slack = limits["absolute"] + limits["relative"] * np.abs(original).max()
    return max(_above(original, converted, slack), _above(converted, original, slack))


def _above(a, b, slack):
    """How far the distribution function of ``a`` lies above that of ``b``, moved by the slack, at most."""
    a, b = np.sort(a), np.sort(b)
    mine = np.searchsorted(a, a, side="right") / a.size
    other = np.searchsorted(b, a + slack, side="right") / b.size
    return float(max(0.0, (mine - other).max()))
