"""Whether choosing by a model pays: machines and workloads are left out, and each model chooses for them.

A model may choose for ``hpcgen optimise`` only where this shows it better than the best fixed choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import expm1, sqrt
from typing import NamedTuple

from hpcgen.plugins.tuning.predict.left_out import FEWEST_FOLDS, Fit, folds, quantile
from hpcgen.plugins.tuning.predict.linear import Coefficients
from hpcgen.plugins.tuning.predict.observations import Observation
from hpcgen.plugins.tuning.predict.pairs import PairCase, RatioPair, pairs, shrunk_ratio
from hpcgen.plugins.tuning.predict.prediction import HeldOutTest, LeftOut, ModelName, six_digits
from hpcgen.plugins.tuning.predict.terms import RunConditions, described


class HeldOutChoice(NamedTuple):
    """A choice of which the outcome is known: its group, the ratio that was measured, and what was predicted."""

    group: str
    ratio: float
    predicted: float | None


def held_out_tests(rows: Sequence[Observation], fit: Fit) -> list[HeldOutTest]:
    """The tests of both models for every change that rows have, with each machine and each workload left out in turn.

    ``fit``: of the linear model. MissingToolError: SciPy is not installed.
    """
    cases: Sequence[LeftOut] = ("machine", "workload")
    found: list[HeldOutTest] = []
    for left_out in cases:
        asked: dict[tuple[str, ModelName], list[HeldOutChoice]] = defaultdict(list)
        for each in _asked(rows, left_out, fit):
            asked[each[:2]].append(each[2])
        found += [_test(change, left_out, by, questions) for (change, by), questions in sorted(asked.items())]
    return found


def _asked(rows: Sequence[Observation], left_out: LeftOut, fit: Fit) -> Iterator[tuple[str, ModelName, HeldOutChoice]]:
    for fold in folds(rows, "new machine" if left_out == "machine" else "new workload"):
        out = pairs(rows[index].row for index in fold.out)
        if not out:
            continue
        kept = [rows[index] for index in fold.kept]
        first = rows[fold.out[0]].case
        group = first.hardware.name if left_out == "machine" else first.workload.name
        of_rest, model = pairs(each.row for each in kept), fit(kept)
        for cell in _cells(out).values():
            pair = cell[0]
            ratio = sum(each.ratio for each in cell) / len(cell)
            yield pair.change, "pairs", HeldOutChoice(group, ratio, _by_pairs(of_rest, pair))
            yield pair.change, "linear", HeldOutChoice(group, ratio, _by_linear(model, pair))


def _cells(found: Sequence[RatioPair]) -> Mapping[tuple[str, ...], list[RatioPair]]:
    """The pairs of one network on one machine: at other numbers of nodes it is the same question."""
    cells: dict[tuple[str, ...], list[RatioPair]] = defaultdict(list)
    for pair in found:
        cells[pair.change, pair.row.workload.name, pair.row.workload.kind, pair.row.hardware.name].append(pair)
    return cells


def _by_pairs(known: Sequence[RatioPair], pair: RatioPair) -> float | None:
    row = pair.row
    assert row.baseline is not None
    said = shrunk_ratio(known, PairCase(row.workload, row.software, row.baseline, row.hardware))
    return None if said is None else said.ratio * (-1 if pair.turned else 1)


def _by_linear(model: Coefficients | None, pair: RatioPair) -> float | None:
    row = pair.row
    if model is None or row.baseline is None:
        return None
    layout = row.nodes, row.ranks_per_node, row.threads_per_rank
    ends = [described(RunConditions(row.workload, end, row.hardware, *layout)) for end in (row.software, row.baseline)]
    if any(model.outside(end) for end in ends):
        return None
    return (sum(model.parts(ends[0])) - sum(model.parts(ends[1]))) * (-1 if pair.turned else 1)


def _test(change: str, left_out: LeftOut, by: ModelName, questions: Sequence[HeldOutChoice]) -> HeldOutTest:
    chosen = _costs(questions, lambda each: (each.predicted or 0.0) > 0)
    always, never = _costs(questions, lambda _: True), _costs(questions, lambda _: False)
    fixed = always if _mean(always) < _mean(never) else never
    gains = [other - mine for mine, other in zip(chosen, fixed, strict=True)]
    enough = len(gains) >= FEWEST_FOLDS
    spread = sqrt(sum((gain - _mean(gains)) ** 2 for gain in gains) / (len(gains) - 1)) if enough else 0.0
    around = quantile(len(gains) - 1) * spread / sqrt(len(gains)) if enough else 0.0
    answered = [each for each in questions if each.predicted is not None]
    return HeldOutTest(
        change=change,
        left_out=left_out,
        by=by,
        groups=len(gains),
        questions=len(questions),
        answered=len(answered),
        cost_percent=six_digits(_mean(chosen)),
        fixed="always" if fixed is always else "never",
        fixed_cost_percent=six_digits(_mean(fixed)),
        gain_low=six_digits(_mean(gains) - around) if enough else None,
        gain_high=six_digits(_mean(gains) + around) if enough else None,
        half=_half(answered),
        better=enough and _mean(gains) - around > 0,
    )


def _costs(questions: Sequence[HeldOutChoice], takes: Callable[[HeldOutChoice], bool]) -> list[float]:
    """By group, how many per cent longer than with the best choice it takes on average."""
    found: dict[str, list[float]] = {}
    for each in questions:
        lost = each.ratio * (-1 if takes(each) else 1)
        found.setdefault(each.group, []).append(100 * max(0.0, expm1(lost)))
    return [_mean(costs) for costs in found.values()]


def _half(answered: Sequence[HeldOutChoice]) -> float | None:
    squares: dict[str, list[float]] = {}
    for each in answered:
        squares.setdefault(each.group, []).append((each.ratio - (each.predicted or 0.0)) ** 2)
    count = len(squares)
    if count < FEWEST_FOLDS:
        return None
    error = sqrt(_mean([_mean(errors) for errors in squares.values()]))
    return six_digits(error * quantile(count - 1) * sqrt(1 + 1 / count))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
