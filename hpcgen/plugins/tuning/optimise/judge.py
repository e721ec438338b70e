"""Candidates planned, and how fast each is in relation to the default: by rows, else by a model of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.measurements.records import HIGHER_IS_BETTER, Measurement, Software
from hpcgen.plugins.tuning.optimise.candidates import RunCandidate
from hpcgen.plugins.tuning.optimise.evidence import measured_here, on_gpus, ratio_to, same_release, software_of
from hpcgen.plugins.tuning.optimise.modelled import Modelled
from hpcgen.plugins.tuning.optimise.records import Estimate

MakePlan = Callable[[RunCandidate], tuple[RunCandidate, Plan]]
"""The plan of a candidate, and the candidate with what was settled by planning it."""


class Judged(msgspec.Struct, frozen=True):
    """A candidate with its plan, or why there is none.

    ``ratio``: how many times as fast as the default candidate it is thought to be, with its estimate's own interval in
    ``low`` and ``high``; None where nothing tells.
    """

    candidate: RunCandidate
    plan: Plan | None = None
    refused: str = ""
    estimate: Estimate = Estimate(basis="none")
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


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

    Parameters
    ----------
    rows: of the request's workload.
    """
    default = next((each for each in candidates if each.plan is not None), None)
    if default is None or default.plan is None:
        return list(candidates)
    compared = _Compared(default.plan, software_of(default.candidate, default.plan), rows, modelled)
    first = compared.default()
    return [
        msgspec.structs.replace(each, estimate=first, ratio=1.0)
        if each is default
        else each
        if each.plan is None
        else compared.with_default(each, each.plan, first)
        for each in candidates
    ]


class _Compared(msgspec.Struct, frozen=True):
    """The default candidate, and what others are compared by."""

    plan: Plan
    software: Software
    rows: Sequence[Measurement]
    modelled: Modelled

    def default(self) -> Estimate:
        """How fast the default is."""
        measured = measured_here(self.rows, self.software, self.plan)
        return measured if measured.value is not None else self.modelled.estimate(self.software, self.plan)

    def with_default(self, each: Judged, plan: Plan, first: Estimate) -> Judged:
        """A candidate with its estimate, by the best evidence that there is."""
        replace = msgspec.structs.replace
        software = software_of(each.candidate, plan)
        own = measured_here(self.rows, software, plan)
        if own.value is not None and own.metric == first.metric and first.basis == "measured":
            return replace(each, estimate=own, ratio=_ratio(own, first))
        if not same_release(software, self.software):
            why = f"nothing compares it with {self.software.framework} {self.software.version}"
            return replace(each, estimate=own if own.value is not None else Estimate(basis="none", why=why))
        relative = ratio_to(self.rows, software, self.software, plan)
        if relative.value is None or on_gpus(plan) != on_gpus(self.plan):
            relative = self.modelled.compared(software, plan, self.software, self.plan)
        if relative.value is not None:
            return replace(each, estimate=relative, ratio=relative.value, low=relative.low, high=relative.high)
        return replace(each, estimate=own if own.value is not None else relative)


def _ratio(own: Estimate, first: Estimate) -> float | None:
    if own.value is None or first.value is None or own.metric is None:
        return None
    ratio = own.value / first.value
    return ratio if own.metric in HIGHER_IS_BETTER else 1 / ratio


def best_of(candidates: Sequence[Judged]) -> Judged | None:
    """The candidate to take: the fastest that is known to be so, else the default.

    What was measured is believed as it is; a prediction takes the default's place only where its whole interval is on
    the faster side.
    """
    default = next((each for each in candidates if each.plan is not None), None)
    better = [each for each in candidates if each.ratio is not None and each.ratio > 1 and _is_sure(each)]
    return max(better, key=lambda each: each.ratio or 0, default=default)


def _is_sure(each: Judged) -> bool:
    if each.low is None:
        return each.estimate.basis == "measured"
    return each.low > 1
