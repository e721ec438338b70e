"""A model for people: its terms, its errors, what it predicts, its plots."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING, TextIO

import click

from hpcgen.cli.tables import table
from hpcgen.core.errors import InputError
from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.measurements.records import UNITS, Measurement
from hpcgen.plugins.tuning.predict import plots
from hpcgen.plugins.tuning.predict.asked import RowQuery, series_for, variants_of
from hpcgen.plugins.tuning.predict.fitting import coefficients, fit
from hpcgen.plugins.tuning.predict.left_out import values_left_out
from hpcgen.plugins.tuning.predict.observations import metric_of, observations, value_of
from hpcgen.plugins.tuning.predict.prediction import Prediction, PredictionRefusal
from hpcgen.plugins.tuning.predict.scaling import law_and_misfits

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.predict.efficiency import EfficiencyTable
    from hpcgen.plugins.tuning.predict.linear import LinearModel
    from hpcgen.plugins.tuning.predict.scaling import Misfit, ScalingModel


def model_text(model: LinearModel, out: TextIO) -> str:
    """Its rows, terms, errors and tests."""
    rows = f"{counted(len(model.rows), 'row')} of {counted(len(model.workloads), 'workload')}"
    head = f"{rows} on {counted(len(model.machines), 'machine')}"
    if model.left_out:
        head += f"; {model.left_out} left out: doubtful, no speed, or of variables alone"
    parts = [head, _terms(model, out), _errors(model, out)]
    return "\n\n".join([*parts, _tests(model, out)] if model.tests else parts)


def _terms(model: LinearModel, out: TextIO) -> str:
    rows = []
    references = {seen.term: seen.reference for seen in model.seen}
    for column in model.columns:
        if column.category:
            effect, low, high = (f"x {exp(value):.3g}" for value in (column.coefficient, column.low, column.high))
            than = references.get(column.term, "")
            name = f"{column.category}, not {than}" if than else column.category
        else:
            effect, low, high = (f"^ {value:.3f}" for value in (column.coefficient, column.low, column.high))
            name = "-"
        rows.append([column.term, name, effect, f"{low} to {high}"])
    return table(["term", "category", "speed", "95 % interval of the fit"], rows, out)


def _errors(model: LinearModel, out: TextIO) -> str:
    rows = []
    for each in model.spreads:
        told = ["-", "-"]
        if each.folds:
            told = [f"x {exp(each.error):.2f}", "too few" if each.half is None else f"x {exp(each.half):.2f}"]
        rows.append([each.situation, each.of, str(each.folds), str(each.predicted), str(each.refused), *told])
    return table(
        ["asked of", "", "times left out", "predicted", "refused", "typical error", "95 % interval"], rows, out
    )


def _tests(model: LinearModel, out: TextIO) -> str:
    """What it costs to choose by a model, against the best choice and the best fixed one."""
    rows = []
    for each in model.tests:
        gain = "too few groups"
        if each.gain_low is not None and each.gain_high is not None:
            gain = f"{each.gain_low:.1f} to {each.gain_high:.1f} %"
        fixed = f"{each.fixed_cost_percent:.1f} % ({each.fixed})"
        of = f"{each.answered} of {each.questions}"
        cost, vote = f"{each.cost_percent:.1f} %", "yes" if each.better else "no"
        rows.append([each.change, counted(each.groups, each.left_out), each.by, of, cost, fixed, gain, vote])
    head = ["choice", "left out in turn", "by", "answered", "costs", "best fixed choice", "gain, 95 % interval", "vote"]
    return table(head, rows, out)


def scaling_text(found: Sequence[tuple[str, ScalingModel, Sequence[Misfit]]], out: TextIO) -> str:
    """The law of each series, and the rows that do not fit."""
    rows = [
        [name, str(len(model.points)), model.form, f"{100 * model.error:.1f} %", _odd(misfits)]
        for name, model, misfits in found
    ]
    return table(["series by nodes", "rows", "law", "error", "rows that do not fit"], rows, out)


def _odd(misfits: Sequence[Misfit]) -> str:
    told = []
    for each in misfits:
        row, expected = each.point.row, each.expected
        if row is None or not row.metric.startswith("seconds"):
            told.append(f"{each.point.nodes} nodes: {100 * (each.point.seconds / expected.value - 1):+.0f} % time")
            continue
        interval = f"{expected.low:.4g} to {expected.high:.4g}"
        told.append(f"{each.point.nodes} nodes: {row.value:.4g}, and the others say {expected.value:.4g} ({interval})")
    return "; ".join(told) or "-"


def prediction_text(found: Prediction | PredictionRefusal) -> str:
    """A prediction with the rows that it rests on; or why there is none."""
    if isinstance(found, PredictionRefusal):
        more = f"\nmeasure next: {found.measure_next}" if found.measure_next else ""
        return f"no prediction: {found.reason}{more}"
    unit = UNITS[found.metric]
    lines = [
        f"{found.value:.4g} {unit}, 95 % interval {found.low:.4g} to {found.high:.4g} ({found.by}, {found.situation})"
    ]
    lines += [f"  {row}" for row in found.rows_used]
    return "\n".join(lines)


def efficiency_text(found: EfficiencyTable, out: TextIO) -> str:
    """One series by nodes, and where the efficiency that is wanted ends."""
    rows = [
        [
            str(row.nodes),
            str(row.ranks),
            f"{row.value:.4g}",
            f"{row.measured:.1%}" + (" DOUBTFUL" if row.doubtful else ""),
            f"{row.law:.1%}" if row.law is not None else "-",
        ]
        for row in found.rows
    ]
    text = f"{found.series}\n" + table(["nodes", "ranks", "value", "measured", found.form or "law"], rows, out)
    if found.wanted is None:
        return text
    measured = f"{found.measured_nodes} nodes were measured with it" if found.measured_nodes else "none was measured so"
    law = f"up to {found.nodes} nodes, {found.ranks} ranks by the law" if found.nodes else found.why
    return f"{text}\nat least {found.wanted:.0%}: {law}; {measured}"


# plots


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
