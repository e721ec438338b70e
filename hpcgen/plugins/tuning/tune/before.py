"""Which settings were faster than the default before, on machines like this one: what a search tries first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from hpcgen.plugins.tuning.bench.intervals import geometric
from hpcgen.plugins.tuning.bench.rows import hardware_of
from hpcgen.plugins.tuning.bench.running import BenchOutcome
from hpcgen.plugins.tuning.bench.variants import ALLOCATORS, KEEPING
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.tune.space import DEFAULT, Settings, Space

LEAST = 1.02
"""A gain below it is not worth a trial before others."""


def gained_before(rows: Iterable[Measurement], default: BenchOutcome, space: Space) -> list[Settings]:
    """Settings of a space that were faster than the default: of this workload first, then by their gain.

    Rows of one command on one day belong together, and the first of them is what the others are compared with, as
    ``bench`` and ``tune`` write them. They are of the same kind of CPU, kind of workload and framework.

    ``default``: what the search compares with.
    """
    cpu, record = hardware_of(default.case.job.plan).cpu, default.workload.record
    bases: dict[tuple[Any, ...], Measurement] = {}
    gains: dict[tuple[tuple[str, str], ...], list[tuple[bool, float]]] = defaultdict(list)
    for row in rows:
        like = (row.hardware.cpu, row.workload.kind, row.software.framework) == (cpu, record.kind, default.framework)
        if not like or row.metric != default.workload.metric or not row.command or row.doubtful:
            continue
        work = row.workload.name, row.workload.precision, row.workload.batch
        key = (*work, row.hardware.name, row.nodes, row.software.content, row.command, row.measured)
        settings = settings_between(bases.setdefault(key, row), row)
        if settings == {}:
            bases[key] = row
        elif settings is not None and all(value in space.axes.get(name, []) for name, value in settings.items()):
            pair = row.workload.name == record.name, row.value / bases[key].value
            gains[tuple(sorted(settings.items()))].append(pair)
    ranked = {
        settings: (any(same for same, _ in found), geometric([gain for _, gain in found]).value)
        for settings, found in gains.items()
    }
    return [dict(each) for each in sorted(ranked, key=ranked.__getitem__, reverse=True) if ranked[each][1] >= LEAST]


def settings_between(first: Measurement, other: Measurement) -> Settings | None:
    """What makes one row's settings the other's; None where that is more than settings of a search can say."""
    if _environment(first).keys() - _environment(other).keys():
        return None
    found = {
        name: value
        for name, value in _settings(other).items()
        if value != _settings(first).get(name, DEFAULT) and value != DEFAULT
    }
    lost = [name for name, value in _settings(first).items() if value and not _settings(other).get(name)]
    return None if lost else found


def _environment(row: Measurement) -> Settings:
    known = row.software.environment
    return {f"env.{name}": value for name, value in known.items() if name != "LD_PRELOAD" and value}


def _settings(row: Measurement) -> Settings:
    preloaded = row.software.environment.get("LD_PRELOAD", "")
    return {
        "layout": f"{row.ranks_per_node}x{row.threads_per_rank}",
        "compiler": row.software.compiler,
        "interop": str(row.interop_threads or DEFAULT),
        "allocator": next((name for name in ALLOCATORS if f"/lib{name}" in preloaded), DEFAULT),
        "memory": "plain" if any(row.software.environment.get(name) == "" for name in KEEPING) else DEFAULT,
        **_environment(row),
    }
