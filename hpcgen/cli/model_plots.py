"""The plots of ``hpcgen model plot``: from rows and what is asked of them to pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import click

from hpcgen.core.errors import InputError
from hpcgen.core.model.measurement import UNITS, Measurement
from hpcgen.plugins.tuning.predict import plots
from hpcgen.plugins.tuning.predict.asked import RowQuery, series_for, variants_of
from hpcgen.plugins.tuning.predict.fitting import coefficients, fit
from hpcgen.plugins.tuning.predict.left_out import values_left_out
from hpcgen.plugins.tuning.predict.observations import metric_of, observations, value_of
from hpcgen.plugins.tuning.predict.scaling import law_and_misfits


def scaling(rows: Sequence[Measurement], wanted: RowQuery, nodes: int, doubtful: bool, kind: str) -> bytes:
    """Every series that is asked for."""
    found = series_for(rows, wanted)
    if not found:
        raise InputError(
            "no rows differ only in the number of nodes",
            expected="rows of three or more numbers of nodes",
            remedy="measure on more numbers of nodes: hpcgen bench --nodes N",
        )
    if len(found) > len(plots.COLOURS):
        raise InputError(
            f"{len(found)} series are too many for one picture",
            expected=f"at most {len(plots.COLOURS)}",
            remedy="say more",
        )
    metrics = {each[0].metric for each in found.values()}
    if len(metrics) > 1:
        raise InputError(f"the series are in different units: {', '.join(sorted(metrics))}", remedy="say more")
    series = [plots.ScalingSeries(name, *law_and_misfits(each)) for name, each in found.items()]
    title = f"{wanted.workload} on {wanted.machine}" if wanted.machine else str(wanted.workload)
    return plots.scaling(series, title, metrics.pop(), kind)


def predicted(rows: Sequence[Measurement], wanted: RowQuery, nodes: int, doubtful: bool, kind: str) -> bytes:
    """Rows of a workload against what a model without their configuration says of them."""
    model = fit(rows, doubtful=doubtful)
    workload = model.workloads.get(f"{wanted.workload} {wanted.kind}")
    level = None if workload is None else model.level_of(workload)
    known = observations(rows, doubtful=doubtful)
    found = [] if level is None else values_left_out(known, level.name, "known", coefficients)
    here = [(row, speed) for row, speed in found if wanted.has(row.row)]
    if level is None or not here:
        raise InputError(f"no row of {wanted.workload} can be predicted from the others", remedy="add measurements")
    spread = next(each for each in model.spreads if (each.situation, each.of) == ("known", "value"))
    pairs = [
        plots.Pair(row.case.hardware.name, value_of(level.name, speed), value_of(level.name, row.speed))
        for row, speed in here
    ]
    half = None if spread.half is None else exp(spread.half)
    title = f"{wanted.workload}, each configuration left out in turn"
    return plots.predicted(pairs, half, title, UNITS[metric_of(level.name)], kind)


def variants(rows: Sequence[Measurement], wanted: RowQuery, nodes: int, doubtful: bool, kind: str) -> bytes:
    """Every configuration of a workload on a machine."""
    if wanted.machine is None:
        raise click.UsageError("--machine is required: variants are compared on one machine")
    model = fit(rows, doubtful=doubtful)
    workload = model.workloads.get(f"{wanted.workload} {wanted.kind}")
    hardware = model.machines.get(wanted.machine)
    found, metric = (
        ([], "") if workload is None or hardware is None else variants_of(model, rows, workload, hardware, nodes)
    )
    if not found:
        raise InputError(f"no row is of {wanted.workload} on {wanted.machine} with {nodes} nodes", remedy="say --nodes")
    unit = "speed relative to the baseline" if metric == "speedup" else UNITS[metric]  # type: ignore[index]
    on = f", {nodes} nodes" if nodes > 1 else ""
    return plots.variants(found, f"{wanted.workload} on {wanted.machine}{on}", unit, kind)
