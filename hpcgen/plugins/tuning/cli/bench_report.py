"""Results of ``hpcgen bench`` as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from hpcgen.cli.tables import table
from hpcgen.cli.test_report import printable
from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.bench.comparison import over_workloads
from hpcgen.plugins.tuning.bench.pressure import BUSY
from hpcgen.plugins.tuning.measurements.records import Metric

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.bench.comparison import Compared
    from hpcgen.plugins.tuning.bench.intervals import Interval
    from hpcgen.plugins.tuning.bench.running import BenchCase, BenchOutcome
    from hpcgen.plugins.tuning.bench.workloads import BenchWorkload

_MANY = 10
"""So many comparisons with 95 % each, and one that is wrong is no surprise."""


def report(compared: Sequence[Compared], out: TextIO) -> str:
    """A table for all workloads; what the user has to know to read it below."""
    several = len({each.outcome.case.image for each in compared}) > 1
    devices = any(each.outcome.memory("device_memory_gb") for each in compared)
    memory: dict[Metric, str] = {"memory_gb": "memory", **({"device_memory_gb": "of GPUs"} if devices else {})}
    head = ["workload", *(["image"] if several else []), "variant", "by", "median", "95 %", "ratio", "95 %"]
    head += [*memory.values(), "verdict"]
    rows = []
    for each in compared:
        outcome = each.outcome
        speed = [outcome.workload.text(each.speed.value), bounds(each.speed)] if each.speed else ["", ""]
        ratio = [f"{each.ratio.value:.3f}", bounds(each.ratio)] if each.ratio else ["", ""]
        image = [outcome.case.image] if several else []
        rows.append([outcome.workload.name, *image, str(outcome.variant), outcome.framework, *speed, *ratio])
        rows[-1] += [*(_gigabytes(outcome.memory(metric)) for metric in memory), printable(each.verdict)]
    parts = [table(head, rows, out)]
    if overall := over_workloads(compared):
        head = ["over all workloads", "variant", "ratio", "95 %"]
        rows = [[image, variant, f"{each.value:.3f}", bounds(each)] for (image, variant), each in overall.items()]
        parts.append(table(head, rows, out))
    notes = list(dict.fromkeys(_not_ours(each.outcome.case) for each in compared if each.outcome.case.python))
    return "\n\n".join(
        [*parts, *(["\n".join(notes)] if notes else []), *_others(compared), *doubt_of(each.ratio for each in compared)]
    )


def _not_ours(case: BenchCase) -> str:
    """What is measured where hpcgen did not build it, and what nobody can tell of it."""
    known = f"{case.content or 'its files cannot all be read'}; " if case.foreign else ""
    whose = "not built by hpcgen: " if case.foreign else ""
    return f"{case.image}: {whose}{known}{case.python}; not known: {', '.join(case.unknown)}"


def _others(compared: Sequence[Compared]) -> list[str]:
    """In how many starts other programs wanted the CPUs, and what the machine's load was."""
    rates = [rate for each in compared for rate in each.outcome.rates.values()]
    waited = [rate.waited for rate in rates if rate.waited is not None]
    loads = [rate.load for rate in rates if rate.load is not None]
    if not waited or not loads or max(waited) < BUSY:
        return []
    many = sum(each >= BUSY for each in waited)
    return [
        f"other programs waited for CPUs before {many} of {counted(len(waited), 'start')}, at most "
        f"{max(waited):.0%} of the time; load {min(loads):.3g} to {max(loads):.3g}"
    ]


def doubt_of(ratios: Iterable[Interval | None]) -> list[str]:
    """What the user has to know of many comparisons."""
    count = sum(ratio is not None for ratio in ratios)
    if count < _MANY:
        return []
    return [f"{count} comparisons: about {count / 20:.0f} would show a difference where there is none"]


def bounds(interval: Interval, scale: float = 1.0) -> str:
    """The ends of an interval; nothing where they are not known."""
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low * scale:.4g} to {interval.high * scale:.4g}"


def _gigabytes(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3g} GB" if values else ""


_BESIDE = ("cpu_seconds", "waited", "load")
"""What of each round is told to programs alone."""


def data(compared: Sequence[Compared]) -> list[dict[str, Any]]:
    """The same for programs, with the rate and the memory of every round."""
    from hpcgen.plugins.tuning.bench.running import MEMORY

    return [
        {
            "workload": each.outcome.workload.name,
            "image": each.outcome.case.image,
            "engine": each.outcome.case.engine,
            "foreign": each.outcome.case.foreign,
            "content": each.outcome.case.content,
            "variant": each.outcome.variant,
            "framework": each.outcome.framework,
            "metric": each.outcome.workload.metric if each.outcome.workload.own is None else each.outcome.workload.unit,
            "rates": each.outcome.values,
            **{name: [getattr(each.outcome.rates[n], name) for n in sorted(each.outcome.rates)] for name in _BESIDE},
            **{metric: each.outcome.memory(metric) for metric in MEMORY},
            "speed": each.speed,
            "ratio": each.ratio,
            "first": each.first,
            "verdict": each.verdict,
        }
        for each in compared
    ]


def best_so_far(outcomes: Sequence[BenchOutcome], workload: BenchWorkload) -> str:
    """``; best so far threads=2, 447.6 samples/s``, by the median; nothing before the first rate."""
    known = [(statistics.median(each.values), each) for each in outcomes if each.workload is workload and each.rates]
    if not known:
        return ""
    value, best = max(known, key=lambda pair: pair[0])
    return f"; best so far {best.variant}, {workload.text(value)}"


def list_of_workloads(out: TextIO) -> str:
    """What there is to run, and by which frameworks."""
    from hpcgen.plugins.tuning.bench.workloads import workloads

    rows = []
    for each in workloads().values():
        record = each.record
        parameters = f"{record.parameters:,}" if record.parameters else ""
        rows.append([each.name, each.title, str(record.batch or ""), parameters, ", ".join(each.frameworks)])
    return table(["workload", "what", "batch", "parameters", "by"], rows, out)
