"""How well a model chooses: its ranking against the measured one, and what its choice costs, against a fixed choice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import exp, isfinite
from typing import NamedTuple

from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Record
from hpcgen.core.support.extras import extra
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.predict.fitting import coefficients
from hpcgen.plugins.tuning.predict.left_out import folds
from hpcgen.plugins.tuning.predict.linear import Coefficients
from hpcgen.plugins.tuning.predict.observations import Observation, observations
from hpcgen.plugins.tuning.predict.prediction import Situation
from hpcgen.plugins.tuning.predict.terms import Described, identity


class Choice(NamedTuple):
    """One of several configurations for the same work on the same nodes; logarithms of speeds."""

    name: str
    measured: float
    predicted: float | None


class Evaluation(Record, frozen=True):
    """How well a model chose among configurations that it had no rows of.

    ``questions``: how many times there was a choice; ``answered``: by the model. ``spearman``: the mean rank
    correlation of predicted and measured order, from -1 to 1. ``regret_percent``: how much slower the model's choice is
    than the best, on average. ``default``: the one configuration that does best if it is always taken, known only
    afterwards; ``default_regret_percent`` and ``model_regret_percent`` compare both on the ``compared`` questions in
    which it is a choice.
    """

    questions: int
    answered: int
    spearman: float | None = None
    regret_percent: float | None = None
    default: str = ""
    compared: int = 0
    default_regret_percent: float | None = None
    model_regret_percent: float | None = None

    @property
    def better(self) -> bool:
        """Whether the model chose better than the default did."""
        mine, other = self.model_regret_percent, self.default_regret_percent
        return mine is not None and other is not None and mine < other

    def __str__(self) -> str:
        if not self.answered:
            return f"the model answers none of {self.questions} questions: no row is near enough"
        text = f"{self.answered} of {self.questions} questions answered; the choice costs {self.regret_percent:.1f} %"
        if self.spearman is not None:
            text += f", rank correlation {self.spearman:.2f}"
        if not self.compared:
            return text
        than = f"always taking {self.default} costs {self.default_regret_percent:.1f} %"
        mine = f"the model {self.model_regret_percent:.1f} %, in the same {self.compared}"
        verdict = "" if self.better else ": THE MODEL IS NO BETTER THAN THIS DEFAULT"
        return f"{text}; {than}, {mine}{verdict}"


def evaluate(rows: Iterable[Measurement], held_out: Iterable[Measurement]) -> Evaluation:
    """Fit the model to rows, and let it choose among those that were held out.

    Raises
    ------
    InputError: nothing can be fitted to the rows. MissingToolError: scikit-learn is not installed.
    """
    found = coefficients(observations(rows))
    if found is None:
        raise InputError(
            "these rows are too few to fit a model to",
            expected="three or more that differ",
            remedy="measure more: hpcgen bench",
        )
    return _summary(_questions(observations(held_out), found))


def evaluate_left_out(rows: Iterable[Measurement], situation: Situation) -> Evaluation:
    """The same with each machine, workload or configuration left out in turn; ``situation`` as of a spread."""
    known = observations(rows)
    questions: list[list[Choice]] = []
    for fold in folds(known, situation):
        found = coefficients([known[index] for index in fold.kept])
        held_out = [known[index] for index in fold.out]
        questions += _questions(held_out, found or Coefficients(columns=[], seen=[], levels=[]))
    return _summary(questions)


def _questions(rows: Sequence[Observation], model: Coefficients) -> list[list[Choice]]:
    """The rows between which there is a choice, with what the model says of each."""
    found: dict[tuple[object, ...], list[Choice]] = defaultdict(list)
    for row in rows:
        case = row.case
        key: tuple[object, ...] = (identity(case.workload), case.hardware.name, case.nodes, row.level)
        name = ", ".join(case.settings)
        if row.baseline is not None and row.baseline_terms is not None:
            key = (*key, row.baseline.settings)
            if key not in found:
                base = ", ".join(row.baseline.settings)
                found[key].append(Choice(base, 0.0, _said(model, row.baseline_terms)))
        found[key].append(Choice(name, row.speed, _said(model, row.terms)))
    return [choices for choices in found.values() if len({each.name for each in choices}) > 1]


def _said(model: Coefficients, terms: Described) -> float | None:
    return None if not model.columns or model.outside(terms) else sum(model.parts(terms))


def _summary(questions: Sequence[Sequence[Choice]]) -> Evaluation:
    answered = [each for each in questions if sum(choice.predicted is not None for choice in each) > 1]
    if not answered:
        return Evaluation(questions=len(questions), answered=0)
    regrets = [_regret(each, _chosen(each)) for each in answered]
    ranks = [rank for each in answered if (rank := _spearman(each)) is not None]
    default, there = _default(answered)
    return Evaluation(
        questions=len(questions),
        answered=len(answered),
        spearman=_mean(ranks) if ranks else None,
        regret_percent=_mean(regrets),
        default=default,
        compared=len(there),
        default_regret_percent=_mean([_regret(each, _named(each, default)) for each in there]),
        model_regret_percent=_mean([_regret(each, _chosen(each)) for each in there]),
    )


def _chosen(choices: Sequence[Choice]) -> Choice:
    known = [each for each in choices if each.predicted is not None]
    return max(known, key=lambda each: (each.predicted or 0.0, each.name))


def _named(choices: Sequence[Choice], name: str) -> Choice:
    return next(each for each in choices if each.name == name)


def _regret(choices: Sequence[Choice], chosen: Choice) -> float:
    return 100 * (exp(max(each.measured for each in choices) - chosen.measured) - 1)


def _default(questions: Sequence[Sequence[Choice]]) -> tuple[str, list[Sequence[Choice]]]:
    """The configuration that is a choice most often, of several the best, and the questions in which it is one."""
    there: dict[str, list[Sequence[Choice]]] = defaultdict(list)
    for each in questions:
        for name in {choice.name for choice in each}:
            there[name].append(each)

    def cost(name: str) -> tuple[float, float, str]:
        regrets = [_regret(each, _named(each, name)) for each in there[name]]
        return (-len(regrets), _mean(regrets), name)

    best = min(there, key=cost)
    return best, there[best]


def _spearman(choices: Sequence[Choice]) -> float | None:
    """The rank correlation; None where all are alike."""
    with extra("model", "evaluate models"):
        from scipy.stats import rankdata
    known = [(each.measured, each.predicted) for each in choices if each.predicted is not None]
    one, other = (rankdata([pair[side] for pair in known]).tolist() for side in (0, 1))
    middle = (len(known) + 1) / 2
    squares = sum((a - middle) ** 2 for a in one) * sum((b - middle) ** 2 for b in other)
    if not squares:
        return None
    rank = sum((a - middle) * (b - middle) for a, b in zip(one, other, strict=True)) / squares**0.5
    return float(rank) if isfinite(rank) else None


def _mean(values: Sequence[float]) -> float:
    return float(f"{sum(values) / len(values):.6g}")
