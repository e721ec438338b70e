"""Measurements as what the linear model is fitted to: logarithms of speeds, and differences of two of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log
from typing import NamedTuple

from hpcgen.plugins.tuning.measurements.records import Measurement, Metric, Workload
from hpcgen.plugins.tuning.predict.terms import Described, RunConditions, case_of, described, identity

SAMPLES = "samples_per_second"
"""The level of all rows whose speed is known in samples per second; other rows are only compared within their own."""
_RATES = frozenset({"samples_per_second", "gflops", "gigabytes_per_second", "speedup"})
_SPEEDS = _RATES | {"seconds_per_epoch", "seconds_per_batch", "seconds"}


class Observation(NamedTuple):
    """One row as the model sees it.

    ``speed``: the natural logarithm of the speed; of a ratio where ``baseline`` is what it is in relation to.
    ``level``: rows of one level are in one unit; empty for a ratio, which has none.
    """

    case: RunConditions
    baseline: RunConditions | None
    speed: float
    level: str
    row: Measurement
    terms: Described
    baseline_terms: Described | None


def observations(rows: Iterable[Measurement], *, doubtful: bool = False) -> list[Observation]:
    """What of the rows says how fast something was. ``doubtful``: take rows, too, that nobody should trust."""
    found = []
    for row in rows:
        if row.metric not in _SPEEDS or (row.doubtful and not doubtful):
            continue
        case = case_of(row)
        if row.metric == "speedup":
            if row.baseline is not None:
                other = case._replace(software=row.baseline)
                terms = described(case), described(other)
                # Of two that differ in variables alone, such as flags, the terms would call the ratio noise.
                if terms[0] != terms[1]:
                    found.append(Observation(case, other, log(row.value), "", row, *terms))
            continue
        rate = samples_per_second(row)
        speed = log(rate) if rate is not None else _own_speed(row)
        level = own_level(row.workload, row.metric) if rate is None else SAMPLES
        found.append(Observation(case, None, speed, level, row, described(case), None))
    return found


def samples_per_second(row: Measurement) -> float | None:
    """A row's speed in samples per second; None where the samples are not known."""
    if row.metric == "samples_per_second":
        return row.value
    if row.metric == "seconds_per_epoch" and row.workload.samples:
        return row.workload.samples / row.value
    if row.metric == "seconds_per_batch" and row.workload.batch:
        return row.workload.batch * row.ranks / row.value
    return None


def own_level(workload: Workload, metric: Metric) -> str:
    """The level of rows that can only be compared with the same metric of the same workload."""
    return f"{identity(workload)} {metric}"


def _own_speed(row: Measurement) -> float:
    return log(row.value) if row.metric in _RATES else -log(row.value)


def metric_of(level: str) -> Metric:
    """The metric in which a level's predictions are told."""
    if level == SAMPLES:
        return "samples_per_second"
    metric: Metric = level.rpartition(" ")[2]  # type: ignore[assignment]
    return metric


def value_of(level: str, speed: float) -> float:
    """The number in the unit of a level's metric for the logarithm of a speed."""
    return exp(speed) if metric_of(level) in _RATES else exp(-speed)
