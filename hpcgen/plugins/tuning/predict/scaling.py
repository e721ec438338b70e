"""Times of one program on several numbers of nodes → the law that fits them, its errors, and rows that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp, inf, log, log2, sqrt
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Count, Record
from hpcgen.core.support.extras import extra
from hpcgen.plugins.tuning.measurements.cited import RowUsed, cited
from hpcgen.plugins.tuning.measurements.records import Measurement, Positive
from hpcgen.plugins.tuning.predict.observations import observations
from hpcgen.plugins.tuning.predict.prediction import LEVEL, MeasureNext, Prediction, PredictionRefusal, six_digits
from hpcgen.plugins.tuning.predict.terms import identity

# Laws of scaling: the time of fixed work on a number of nodes as a sum of terms, none of them negative.
#
# The work is fixed, such as an epoch, and the share of a rank in one step is not (weak scaling), so an epoch on twice
# as many nodes has half as many steps. Communication between nodes then costs, of each step, its logarithm (a tree) or
# what a ring moves. What ranks of one node say to each other is in the first term, since it does not depend on nodes.
WORK, FLOOR, TREE, RING, STEP = "work", "floor", "tree", "ring", "fixed steps"
TERMS: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {
        # What is divided among the nodes.
        WORK: lambda nodes, megabytes: 1 / nodes,
        # What is not (Amdahl).
        FLOOR: lambda nodes, megabytes: 1.0,
        # A tree's depth, once a step, and there are 1 / nodes as many steps.
        TREE: lambda nodes, megabytes: megabytes * log2(nodes) / nodes,
        # A ring moves (nodes - 1) / nodes of the message twice over each link.
        RING: lambda nodes, megabytes: megabytes * (nodes - 1) / nodes**2,
        # A tree's depth where there are as many steps on any number of nodes (strong scaling).
        STEP: lambda nodes, megabytes: megabytes * log2(nodes),
    }
)
"""What a term is worth on a number of nodes, which exchange so many megabytes in a step."""
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ideal": (WORK,),
        "amdahl": (WORK, FLOOR),
        "tree": (WORK, TREE),
        "ring": (WORK, RING),
        "fixed steps": (WORK, STEP),
        "tree and floor": (WORK, TREE, FLOOR),
        "ring and floor": (WORK, RING, FLOOR),
    }
)
"""The laws that are tried, those of fewer terms first."""
_NEAR = 1e-9


class Law(Record, frozen=True, kw_only=True):
    """``seconds``: each term's factor; ``megabytes``: what a rank sends in a step, 1 where that is not known.

    ``first``: the number of nodes whose efficiency is 1.
    """

    seconds: dict[str, float]
    megabytes: float = 1.0
    first: int = 1

    def time(self, nodes: float, megabytes: float | None = None) -> float:
        """Seconds on so many nodes."""
        size = self.megabytes if megabytes is None else megabytes
        return sum(factor * TERMS[term](nodes, size) for term, factor in self.seconds.items())

    def efficiency(self, nodes: int) -> float:
        """The share of the nodes' time that does what ``first`` nodes would do in the same time of all nodes."""
        return self.time(self.first) * self.first / (self.time(nodes) * nodes)

    def most_nodes(self, efficiency: float, limit: int) -> int:
        """The largest number of nodes, at most ``limit``, whose efficiency is not below the one that is wanted.

        InputError: the efficiency is not above 0 and at most 1, or even ``first`` nodes are more than the limit.
        """
        if not 0 < efficiency <= 1:
            raise InputError(f"an efficiency of {efficiency:g} is wanted", expected="more than 0, at most 1")
        if limit < self.first:
            raise InputError(f"no data for fewer than {self.first} nodes", expected=f"a limit >= {self.first}")
        # No term is negative, so that efficiency never rises with nodes: one that is enough has only such below it.
        low, high = self.first, limit
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._enough(middle, efficiency) else (low, middle - 1)
        return low

    def _enough(self, nodes: int, efficiency: float) -> bool:
        # The last digits of floats must not cost a node.
        return self.efficiency(nodes) >= efficiency * (1 - _NEAR)


FEWEST = 3
"""Points without which nothing is fitted."""
FAR = 4
"""How many times fewer or more nodes than any point has a law may be asked for."""
_USUAL = 0.05
"""How much runs of one program may differ without being told; points may fit a law better by chance."""
_EXACT = 1e-6
"""A relative error that counts as none."""
_AS_GOOD = 1.05
"""A law with fewer terms is taken if its error is not larger by more than this factor."""


class ScalingPoint(Record, frozen=True):
    """``seconds`` of fixed work on ``nodes``, which send ``megabytes`` in a step; where it is from, if it is a row."""

    nodes: Count
    seconds: Positive
    megabytes: Positive = 1.0
    row: RowUsed | None = None


class LawCandidate(Record, frozen=True):
    """A law that was tried: the root mean square of its relative errors of points left out, and its AICc."""

    form: str
    error: float
    aicc: float


class ScalingModel(Law, frozen=True, kw_only=True):
    """The law that fits points best.

    ``form``: its name; ``error``: of points that were left out, relative; ``half``: half of the 95 % interval between
    points, in logarithms; ``step``: the largest change of nodes × seconds over a doubling of nodes among the points,
    in logarithms, by which the interval grows for each doubling beyond them; ``what``: the series, where it is of rows.
    """

    form: str
    points: list[ScalingPoint]
    error: float
    half: float
    step: float
    candidates: list[LawCandidate]
    what: MeasureNext | None = None

    def predict(self, nodes: int, megabytes: float | None = None) -> Prediction | PredictionRefusal:
        """Seconds on so many nodes; a refusal far from all points."""
        least, most = self.points[0].nodes, self.points[-1].nodes
        if not least / FAR <= nodes <= most * FAR:
            nearer = min(nodes, most * FAR // 2) if nodes > most else max(1, least // FAR)
            more = None if self.what is None else msgspec.structs.replace(self.what, nodes=nearer)
            span = f"{least} to {most} nodes"
            return PredictionRefusal(
                reason=f"{nodes} nodes are requested, but the rows cover {span}", measure_next=more
            )
        return self.expected(nodes, megabytes)

    def expected(self, nodes: int, megabytes: float | None = None) -> Prediction:
        """The same, however far away."""
        value = self.time(nodes, megabytes)
        half = self.half_at(nodes)
        near = sorted(self.points, key=lambda point: (abs(log2(point.nodes / nodes)), point.nodes))[:FEWEST]
        return Prediction(
            value=value,
            low=value * exp(-half),
            high=value * exp(half),
            metric=next((point.row.metric for point in near if point.row), "seconds"),
            rows_used=[point.row for point in near if point.row is not None],
            by=f"scaling: {self.form}",
            situation="known",
        )

    def half_at(self, nodes: float) -> float:
        """Half of the 95 % interval on so many nodes, in logarithms."""
        beyond = max(0.0, log2(nodes / self.points[-1].nodes), log2(self.points[0].nodes / nodes))
        return sqrt(self.half**2 + (beyond * self.step) ** 2)

    def most_nodes(self, efficiency: float, limit: int) -> int:
        """As :meth:`Law.most_nodes`, but never more than may be predicted."""
        return super().most_nodes(efficiency, min(limit, self.points[-1].nodes * FAR))


class Misfit(NamedTuple):
    """A point that does not fit the others: what these predict of it."""

    point: ScalingPoint
    expected: Prediction


def fit_scaling(points: Iterable[ScalingPoint | tuple[int, float]], what: MeasureNext | None = None) -> ScalingModel:
    """The law whose relative errors of points that are left out are smallest.

    points: at least three, of different numbers of nodes; or pairs of nodes and seconds.
    what: the series, for what is to be measured next.
    InputError: there are too few. MissingToolError: SciPy is not installed.
    """
    given = [
        each if isinstance(each, ScalingPoint) else ScalingPoint(nodes=each[0], seconds=each[1]) for each in points
    ]
    given.sort(key=lambda point: point.nodes)
    if len({point.nodes for point in given}) < FEWEST:
        raise InputError(
            f"{len(given)} points are too few for a law of scaling",
            expected=f"{FEWEST} or more numbers of nodes",
            remedy="measure on more numbers of nodes: hpcgen bench --nodes N",
        )
    tried = [_candidate(form, given) for form, terms in FORMS.items() if len(terms) <= len(given) - 2]
    best = min(each.error for each in tried)
    good = [each for each in tried if each.error <= best * _AS_GOOD + _EXACT]
    chosen = min(good, key=lambda each: (len(FORMS[each.form]), each.aicc))
    terms = FORMS[chosen.form]
    with extra("model", "fit models"):
        from scipy.stats import t
    return ScalingModel(
        seconds={term: float(f"{factor:.8g}") for term, factor in zip(terms, _factors(terms, given), strict=True)},
        megabytes=given[-1].megabytes,
        first=given[0].nodes,
        form=chosen.form,
        points=given,
        error=chosen.error,
        half=float(f"{chosen.error * t.ppf((1 + LEVEL) / 2, len(given) - len(terms)):.6g}"),
        step=_step(given),
        candidates=tried,
        what=what,
    )


def misfits(points: Sequence[ScalingPoint]) -> list[Misfit]:
    """The points that the law of all others contradicts, the worst first; each is left out before the next is found.

    Of N points, one is told where it is outside of the interval that holds 1 - 5 % / N of what fits, and 5 % off.
    """
    kept = sorted(points, key=lambda point: point.nodes)
    found: list[Misfit] = []
    while len(kept) > FEWEST + 1:
        judged = [_judged(kept, index) for index in range(len(kept))]
        worst = max(range(len(kept)), key=lambda index: judged[index][0])
        excess, expected = judged[worst]
        if excess <= 1:
            break
        found.append(Misfit(kept.pop(worst), expected))
    return found


def _judged(points: Sequence[ScalingPoint], index: int) -> tuple[float, Prediction]:
    """How many times farther off than it may be a point is, and what the others predict of it."""
    with extra("model", "fit models"):
        from scipy.stats import t
    point, others = points[index], [each for number, each in enumerate(points) if number != index]
    model = fit_scaling(others)
    expected = model.expected(point.nodes, point.megabytes)
    freedom = len(others) - len(model.seconds)
    wider = t.ppf(1 - (1 - LEVEL) / 2 / len(points), freedom) / t.ppf((1 + LEVEL) / 2, freedom)
    allowed = max(wider * model.half_at(point.nodes), _USUAL)
    return abs(log(point.seconds / expected.value)) / allowed, expected


def _candidate(form: str, points: Sequence[ScalingPoint]) -> LawCandidate:
    """A law's errors: of each point in turn, left out, and those of the fit for AICc."""
    terms, count = FORMS[form], len(points)
    errors = []
    for index, point in enumerate(points):
        others = [each for number, each in enumerate(points) if number != index]
        errors.append(_time(terms, _factors(terms, others), point) / point.seconds - 1)
    factors = _factors(terms, points)
    rest = sum((_time(terms, factors, point) / point.seconds - 1) ** 2 for point in points)
    # The spread of the errors is estimated, too.
    estimated = len(terms) + 1
    left = count - estimated - 1
    correction = 2 * estimated * (estimated + 1) / left if left > 0 else inf
    aicc = count * log(max(rest / count, _EXACT**2)) + 2 * estimated + correction
    return LawCandidate(form=form, error=six_digits(sqrt(sum(e**2 for e in errors) / count)), aicc=six_digits(aicc))


def _factors(terms: Sequence[str], points: Sequence[ScalingPoint]) -> list[float]:
    """The factors, none below 0, with the least squares of relative errors."""
    with extra("model", "fit models"):
        import numpy as np
        from scipy.optimize import nnls
    matrix = np.array([[TERMS[term](each.nodes, each.megabytes) / each.seconds for term in terms] for each in points])
    # Equal columns, so that no unit decides when the solver stops.
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1
    found = nnls(matrix / scale, np.ones(len(points)))[0] / scale
    return [float(factor) for factor in found]


def _time(terms: Sequence[str], factors: Sequence[float], point: ScalingPoint) -> float:
    return sum(f * TERMS[term](point.nodes, point.megabytes) for term, f in zip(terms, factors, strict=True))


def _step(points: Sequence[ScalingPoint]) -> float:
    """The largest change of nodes × seconds from one point to the next, for a doubling of nodes."""
    pairs = [(one, other) for one, other in pairwise(points) if one.nodes < other.nodes]
    changes = [
        abs(log(other.nodes * other.seconds / (one.nodes * one.seconds))) / max(1.0, log2(other.nodes / one.nodes))
        for one, other in pairs
    ]
    return six_digits(max(changes))


def points_of(rows: Iterable[Measurement], *, doubtful: bool = False) -> list[ScalingPoint]:
    """Rows of one configuration as points; a speed is one over the seconds of a unit of work.

    ``doubtful``: take rows, too, that nobody should trust.
    """
    return [
        ScalingPoint(nodes=each.case.nodes, seconds=exp(-each.speed), row=cited(each.row))
        for each in observations(rows, doubtful=doubtful)
        if each.baseline is None
    ]


def series_of(rows: Iterable[Measurement]) -> dict[tuple[str, ...], list[Measurement]]:
    """Rows that differ in the number of nodes alone, where they are of three or more."""
    found: dict[tuple[str, ...], list[Measurement]] = {}
    for each in observations(rows, doubtful=True):
        if each.baseline is None:
            key = (identity(each.case.workload), each.case.hardware.name, *each.case.settings, each.level)
            found.setdefault(key, []).append(each.row)
    return {key: rows for key, rows in found.items() if len({row.nodes for row in rows}) >= FEWEST}


def law_and_misfits(rows: Sequence[Measurement]) -> tuple[ScalingModel, list[Misfit]]:
    """The law of a series without the rows that do not fit it, and these; doubtful rows are told, never fitted."""
    points = points_of(rows, doubtful=True)
    odd = misfits(points)
    doubted = {row.nodes for row in rows if row.doubtful}
    out = {each.point.nodes for each in odd} | doubted
    kept = [point for point in points if point.nodes not in out]
    if len({point.nodes for point in kept}) < FEWEST:
        kept, odd = points, []
    return fit_scaling(kept, measure_next(rows[0])), odd


def measure_next(row: Measurement) -> MeasureNext:
    """The series that a row belongs to, as what may be measured."""
    return MeasureNext(
        workload=row.workload.name,
        framework=row.software.framework,
        machine=row.hardware.name,
        compiler=row.software.compiler,
        ranks_per_node=row.ranks_per_node,
        threads_per_rank=row.threads_per_rank,
    )
