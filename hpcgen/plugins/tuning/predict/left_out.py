"""How far off a model is for rows that it does not know: whole machines and workloads are left out in turn.

Rows of one series are near copies of each other, so leaving out single rows would make any model look good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import sqrt
from typing import Literal, NamedTuple

from hpcgen.core.support.extras import extra
from hpcgen.plugins.tuning.predict.linear import Coefficients, Spread
from hpcgen.plugins.tuning.predict.observations import Observation
from hpcgen.plugins.tuning.predict.prediction import LEVEL, Situation, six_digits
from hpcgen.plugins.tuning.predict.terms import identity

MOST_FOLDS = 60
"""Beyond as many configurations, several are left out together."""
FEWEST_FOLDS = 3
"""With fewer, an interval of 95 % would say nothing."""
Fit = Callable[[Sequence[Observation]], Coefficients | None]


class Fold(NamedTuple):
    """Rows that are left out, by number, and those that the model is fitted to then."""

    out: list[int]
    kept: list[int]


class LeftOutPrediction(NamedTuple):
    """A row that was left out: its number, what was predicted of it, and the differences in logarithms.

    ``ratios``: how far off it is in relation to other rows of the same workload, machine and number of nodes.
    """

    row: int
    speed: float
    errors: list[float]
    ratios: list[float]


def spreads(rows: Sequence[Observation], fit: Fit) -> list[Spread]:
    """The errors for every situation in which a model may be asked."""
    found: list[Spread] = []
    for situation in ("known", "new machine", "new workload", "new machine and workload"):
        guessed = [(fold, guesses(rows, fold, fit)) for fold in folds(rows, situation)]
        found += [_spread(situation, of, guessed) for of in ("value", "ratio")]
    return found


def folds(rows: Sequence[Observation], situation: Situation) -> Iterator[Fold]:
    """What is left out in turn: a configuration at all its numbers of nodes, a machine, a workload, or both."""
    machines = [row.case.hardware.name for row in rows]
    workloads = [row.case.workload.name for row in rows]
    everything = range(len(rows))
    if situation == "known":
        keys = [(*pair, *row.case.settings) for *pair, row in zip(machines, workloads, rows, strict=True)]
        number = {key: index % MOST_FOLDS for index, key in enumerate(sorted(set(keys)))}
        names: Sequence[object] = [number[key] for key in keys]
    else:
        names = {"new machine": machines, "new workload": workloads}.get(
            situation, list(zip(machines, workloads, strict=True))
        )
    for name in sorted(set(names)):  # type: ignore[type-var]
        out = [index for index in everything if names[index] == name]
        if situation == "new machine and workload":
            machine, workload = machines[out[0]], workloads[out[0]]
            kept = [index for index in everything if machines[index] != machine and workloads[index] != workload]
        else:
            kept = [index for index in everything if names[index] != name]
        yield Fold(out, kept)


def values_left_out(
    rows: Sequence[Observation], level: str, situation: Situation, fit: Fit
) -> list[tuple[Observation, float]]:
    """The rows of a level with the logarithm of the speed that a model without them predicts, as far as it does."""
    found = (guess for fold in folds(rows, situation) for guess in guesses(rows, fold, fit))
    return [(rows[guess.row], guess.speed) for guess in found if guess.errors and rows[guess.row].level == level]


def guesses(rows: Sequence[Observation], fold: Fold, fit: Fit) -> list[LeftOutPrediction]:
    """What a model without the rows says of them, as far as it says anything."""
    found = fit([rows[index] for index in fold.kept])
    if found is None:
        return []
    intercepts = {level.name: level.intercept for level in found.levels}
    # Of the rows that are asked for alone: most are of other machines and workloads.
    total = cache(lambda index: sum(found.parts(rows[index].terms)))
    return [guess for index in fold.out if (guess := _guess(rows, index, found, intercepts, total)) is not None]


def _guess(
    rows: Sequence[Observation],
    index: int,
    found: Coefficients,
    intercepts: dict[str, float],
    total: Callable[[int], float],
) -> LeftOutPrediction | None:
    row = rows[index]
    if found.outside(row.terms) or (row.baseline_terms is not None and found.outside(row.baseline_terms)):
        return None
    if row.baseline_terms is not None:
        ratio = total(index) - sum(found.parts(row.baseline_terms))
        return LeftOutPrediction(index, ratio, [], [row.speed - ratio])
    others = [other for other in range(len(rows)) if other != index and _comparable(row, rows[other])]
    ratios = [(row.speed - rows[other].speed) - (total(index) - total(other)) for other in others]
    if row.level not in intercepts:
        return LeftOutPrediction(index, total(index), [], ratios) if ratios else None
    speed = intercepts[row.level] + total(index)
    return LeftOutPrediction(index, speed, [row.speed - speed], ratios)


def _comparable(one: Observation, other: Observation) -> bool:
    """Whether two rows are a choice between configurations: the same work on as much of the same machine."""
    same = (
        identity(one.case.workload) == identity(other.case.workload)
        and one.case.hardware.name == other.case.hardware.name
    )
    return same and one.level == other.level and one.case.nodes == other.case.nodes


def _spread(
    situation: Situation, of: Literal["value", "ratio"], guessed: Sequence[tuple[Fold, list[LeftOutPrediction]]]
) -> Spread:
    squares = []
    predicted = refused = 0
    for fold, found in guessed:
        errors = [error for guess in found for error in (guess.errors if of == "value" else guess.ratios)]
        count = sum(bool(guess.errors if of == "value" else guess.ratios) for guess in found)
        predicted += count
        refused += len(fold.out) - count
        if errors:
            squares.append(sum(error**2 for error in errors) / len(errors))
    error = sqrt(sum(squares) / len(squares)) if squares else 0.0
    return Spread(
        situation=situation,
        of=of,
        folds=len(squares),
        predicted=predicted,
        refused=refused,
        error=six_digits(error),
        half=six_digits(error * quantile(len(squares) - 1) * sqrt(1 + 1 / len(squares)))
        if len(squares) >= FEWEST_FOLDS
        else None,
    )


def quantile(freedom: int) -> float:
    """Student's, for both sides: few folds say little of the error itself."""
    with extra("model", "fit models"):
        from scipy.stats import t
    return float(t.ppf((1 + LEVEL) / 2, freedom))
