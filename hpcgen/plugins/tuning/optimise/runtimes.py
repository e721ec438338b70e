"""Runtimes that were faster than a framework: proposed, since only the user's own model decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpcgen.core.model.plan import Finding, Plan
from hpcgen.plugins.tuning.measurements.cited import date_of, hardware_words, lacks
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.optimise.evidence import computes_alike
from hpcgen.plugins.tuning.predict.pairs import as_run, pairs

_REMEDY = "convert your own model and compare: hpcgen onnx convert, then hpcgen onnx bench"


def runtime_notes(framework: str, runtimes: Iterable[str], plan: Plan, known: Measurements) -> list[Finding]:
    """A note of each runtime that was measured to be faster for inference than the framework that was chosen.

    ``runtimes``: those that could be planned; ``plan``: the chosen one.
    """
    wanted = {f"{runtime} for {framework}" for runtime in runtimes}
    by_runtime: dict[str, list[Measurement]] = {}
    for pair in pairs(known.find(doubtful=False)):
        if pair.change in wanted and not pair.turned and _is_faster(pair.row, plan):
            by_runtime.setdefault(as_run(pair.row.software).framework, []).append(pair.row)
    best_first = sorted(by_runtime.items(), key=lambda each: -max(row.value for row in each[1]))
    return [
        Finding(
            name="runtime",
            severity="note",
            message=f"{runtime} was faster than {framework}: {'; '.join(_told(rows))}",
            remedy=_REMEDY,
        )
        for runtime, rows in best_first
    ]


def _is_faster(row: Measurement, plan: Plan) -> bool:
    """Whether a ratio of inference says all of itself, and is above 1 with all of its interval."""
    above = min(row.value, row.low if row.low is not None else row.value) > 1
    return row.workload.kind == "inference" and above and not lacks(row) and computes_alike(plan, row)


def _told(rows: Iterable[Measurement]) -> Iterator[str]:
    for row in sorted(rows, key=lambda row: -row.value):
        yield f"{row.workload.name} {row.value:.2f} times, on {hardware_words(row.hardware)}, {date_of(row)}"
