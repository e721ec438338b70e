"""Candidates planned, and how fast each is in relation to the default: by rows, else by a model of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.measurements.cited import lacks
from hpcgen.plugins.tuning.measurements.records import HIGHER_IS_BETTER, Measurement, Software
from hpcgen.plugins.tuning.optimise.candidates import RunCandidate
from hpcgen.plugins.tuning.optimise.evidence import on_gpus, ratios_here, rows_here, software_of, speed_of
from hpcgen.plugins.tuning.optimise.modelled import Modelled
from hpcgen.plugins.tuning.optimise.records import Estimate
from hpcgen.plugins.tuning.predict.pairs import PairCase, releases_between

MakePlan = Callable[[RunCandidate], tuple[RunCandidate, Plan]]
"""The plan of a candidate, and the candidate with what was settled by planning it."""


class Judged(msgspec.Struct, frozen=True):
    """A candidate with its plan, or why there is none.

    ``ratio``: how many times as fast as the default candidate it is thought to be; None where nothing tells.
    ``decides``: whether it may take the default's place by that.
    """

    candidate: RunCandidate
    plan: Plan | None = None
    refused: str = ""
    estimate: Estimate = Estimate(basis="none")
    ratio: float | None = None
    decides: bool = False


def planned(found: Iterable[RunCandidate], make: MakePlan) -> list[Judged]:
    """Each candidate with its plan or the reason for which there is none; what a block does by itself counts once."""
    result = []
    usual = set()
    for candidate in found:
        kind = (candidate.stack.name, candidate.partition, candidate.suited.compiler)
        if (*kind, candidate.install) in usual:
            continue
        try:
            settled, plan = make(candidate)
        except HpcgenError as error:
            result.append(Judged(candidate, refused=error.problems[0].on_one_line))
        else:
            result.append(Judged(settled, plan))
            usual.add((*kind, software_of(settled, plan).install))
    return result


def judged(candidates: Sequence[Judged], rows: Sequence[Measurement], modelled: Modelled) -> list[Judged]:
    """The candidates with their estimates; the first that has a plan is the default that others are compared with.

    ``rows``: of the request's workload.
    """
    default = next((each for each in candidates if each.plan is not None), None)
    if default is None or default.plan is None:
        return list(candidates)
    compared = _Compared(default.plan, software_of(default.candidate, default.plan), rows, modelled)
    return [
        msgspec.structs.replace(each, estimate=compared.default(), ratio=1.0)
        if each is default
        else each
        if each.plan is None
        else compared.with_default(each, each.plan)
        for each in candidates
    ]


class _Compared(msgspec.Struct, frozen=True):
    """The default candidate, and what others are compared by; ``rows`` of the request's workload."""

    plan: Plan
    software: Software
    rows: Sequence[Measurement]
    modelled: Modelled

    def default(self) -> Estimate:
        """How fast the default is."""
        return speed_of(rows_here(self.rows, self.software, self.plan), self.plan)

    def with_default(self, each: Judged, plan: Plan) -> Judged:
        """A candidate with its estimate, by the best evidence that there is."""
        replace = msgspec.structs.replace
        software = software_of(each.candidate, plan)
        own, first = rows_here(self.rows, software, plan), rows_here(self.rows, self.software, self.plan)
        estimate = speed_of(own, plan)
        if own and first and (ratio := _ratio(own[0], first[0])) is not None:
            return replace(each, estimate=estimate, ratio=ratio, decides=True)
        relative, decides = self._relative(software, plan)
        if relative.value is None:
            return replace(each, estimate=estimate if own else relative)
        return replace(each, estimate=relative, ratio=relative.value, decides=decides)

    def _relative(self, software: Software, plan: Plan) -> tuple[Estimate, bool]:
        """How many times as fast as the default it is, and whether that may decide."""
        here = (plan.partition, on_gpus(plan))
        if here != (self.plan.partition, on_gpus(self.plan)):
            return Estimate(basis="none", why="it computes on other processors or nodes than the default"), False
        if (
            software.framework == self.software.framework
            and releases_between(software.version, self.software.version) != 0
        ):
            why = f"nothing compares it with {self.software.framework} {self.software.version}"
            return Estimate(basis="none", why=why), False
        modelled = self.modelled
        case = PairCase(modelled.workload, software, self.software, modelled.hardware(plan))
        measured = ratios_here(modelled.pairs, case, plan)
        if measured.value is not None:
            return measured, True
        return modelled.compared(case, plan)


def _ratio(own: Measurement, first: Measurement) -> float | None:
    """How many times as fast one row is as another, if both say all of themselves and are of the same work."""
    same = ((each.metric, each.nodes, each.workload.batch, each.workload.precision) for each in (own, first))
    if len(set(same)) > 1 or lacks(own) or lacks(first):
        return None
    ratio = own.value / first.value
    return ratio if own.metric in HIGHER_IS_BETTER else 1 / ratio


def best_of(candidates: Sequence[Judged]) -> Judged | None:
    """The candidate to take: the fastest that is known to be so, else the default.

    What was measured is believed as it is; a prediction takes the default's place only where a held-out test shows that
    choosing by such predictions costs less than any fixed choice.
    """
    default = next((each for each in candidates if each.plan is not None), None)
    better = [each for each in candidates if each.ratio is not None and each.ratio > 1 and each.decides]
    return max(better, key=lambda each: each.ratio or 0, default=default)
