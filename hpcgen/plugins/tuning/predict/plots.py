"""Models as pictures: scaling, predicted against measured, variants compared; the same data give the same SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgen._version import __version__
from hpcgen.core.support.extras import extra
from hpcgen.plugins.tuning.measurements.records import UNITS, Metric
from hpcgen.plugins.tuning.predict.prediction import Prediction
from hpcgen.plugins.tuning.predict.scaling import Misfit, ScalingModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#444444")
"""Told apart by those who see few colours, too (Okabe and Ito's, and two more)."""
MARKERS = "osD^vPX*"
_STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "hpcgen",
    "svg.fonttype": "none",
}
_STEPS = 160
_WIDE = 1000


class ScalingSeries(NamedTuple):
    """One line of a picture of scaling: what it is of, its law, points that do not fit."""

    name: str
    model: ScalingModel
    misfits: Sequence[Misfit] = ()


class Pair(NamedTuple):
    """A row that was left out: what was predicted and measured, in samples per second or another unit of speed."""

    group: str
    predicted: float
    measured: float


class ComparisonBar(NamedTuple):
    """One bar of a comparison: a prediction, and what was measured, where something was."""

    name: str
    prediction: Prediction | None
    measured: float | None = None


def scaling(series: Sequence[ScalingSeries], title: str, metric: Metric, kind: str) -> bytes:
    """Time by nodes, both logarithmic, with laws, intervals and ideal lines; below it the efficiency of each."""
    with _figure((8.0, 7.4), kind) as (figure, out):
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for index, each in enumerate(series):
            _draw_series(upper, lower, each, index)
        upper.set(xscale="log", yscale="log")
        _plain_ticks(upper, sorted({point.nodes for each in series for point in each.model.points}))
        time = f"time ({UNITS[metric]})" if metric.startswith("seconds") else f"1 / speed (1 / ({UNITS[metric]}))"
        upper.set_ylabel(time)
        upper.plot([], [], color="#777777", linestyle=":", linewidth=1.2, label="ideal, from the first point")
        upper.plot([], [], "o", markerfacecolor="white", markeredgecolor="#777777", label="does not fit the others")
        upper.set_title(title, loc="left", fontsize=11)
        upper.legend(
            loc="lower left", fontsize=8.5, title="measured, law, 95 % interval", title_fontsize=8.5, alignment="left"
        )
        lower.axhline(100, color="#777777", linestyle=":", linewidth=1.2, zorder=1)
        lower.set_ylabel("parallel efficiency (%)")
        lower.set_xlabel("nodes")
        _finish(figure, out, kind)
    return out.getvalue()


def _draw_series(upper: Axes, lower: Axes, each: ScalingSeries, index: int) -> None:
    colour, marker, model = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], each.model
    first, last = model.points[0], model.points[-1]
    odd = {misfit.point.nodes for misfit in each.misfits}
    end = max([last.nodes * 2, *odd])
    nodes = [exp(log(first.nodes) + step / _STEPS * log(end / first.nodes)) for step in range(_STEPS + 1)]
    work = first.seconds * first.nodes
    fits = [point for point in model.points if point.nodes not in odd]
    label = f"{each.name}: {model.form}"
    for axes, shown in ((upper, _time), (lower, partial(_efficiency, work))):
        sides = [[shown(n, model.time(n) * exp(side * model.half_at(n))) for n in nodes] for side in (-1, 0, 1)]
        axes.plot(nodes, sides[1], color=colour, linewidth=1.6)
        axes.fill_between(nodes, sides[0], sides[2], color=colour, alpha=0.18, linewidth=0)
        measured = [shown(point.nodes, point.seconds) for point in fits]
        axes.plot([point.nodes for point in fits], measured, marker, color=colour, markersize=5, label=label)
        for misfit in each.misfits:
            at = (misfit.point.nodes, shown(misfit.point.nodes, misfit.point.seconds))
            axes.plot(*at, marker, markersize=8, markerfacecolor="white", markeredgecolor=colour, markeredgewidth=1.6)
    ideal = [work / number for number in (first.nodes, end)]
    upper.plot([first.nodes, end], ideal, color="#777777", linestyle=":", linewidth=1.2, zorder=1)


def _time(nodes: float, seconds: float) -> float:
    return seconds


def _efficiency(work: float, nodes: float, seconds: float) -> float:
    return 100 * work / (nodes * seconds)


def predicted(pairs: Sequence[Pair], factor: float | None, title: str, unit: str, kind: str) -> bytes:
    """Predicted against measured, both logarithmic; ``factor``: the 95 % interval each way, shaded."""
    with _figure((6.2, 6.0), kind) as (figure, out):
        axes = figure.subplots()
        ends = [value for pair in pairs for value in (pair.predicted, pair.measured)]
        low, high = min(ends) / 1.6, max(ends) * 1.6
        axes.plot([low, high], [low, high], color="#777777", linestyle=":", linewidth=1.2, label="predicted = measured")
        if factor is not None:
            below, above = [low / factor, high / factor], [low * factor, high * factor]
            axes.fill_between(
                [low, high],
                below,
                above,
                color="#777777",
                alpha=0.13,
                linewidth=0,
                label=f"95 % interval: × or ÷ {factor:.2f}",
            )
        for index, group in enumerate(sorted({pair.group for pair in pairs})):
            here = [pair for pair in pairs if pair.group == group]
            axes.plot(
                [pair.measured for pair in here],
                [pair.predicted for pair in here],
                MARKERS[index % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
                markersize=5.5,
                label=group,
            )
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            _plain_numbers(axis, (1, 2, 5) if high / low < _WIDE else (1,))
        axes.set_xlabel(f"measured ({unit})")
        axes.set_ylabel(f"predicted without its configuration ({unit})")
        axes.set_title(title, loc="left", fontsize=11)
        axes.legend(loc="upper left", fontsize=8.5)
        _finish(figure, out, kind)
    return out.getvalue()


def variants(compared: Sequence[ComparisonBar], title: str, unit: str, kind: str) -> bytes:
    """Variants below each other, the first on top: predictions with their intervals, and what was measured.

    The axis is logarithmic, as the intervals are; a ratio has a line at 1.
    """
    with _figure((8.4, 1.9 + 0.5 * len(compared)), kind) as (figure, out):
        axes = figure.subplots()
        for place, each in enumerate(compared):
            if each.prediction is not None:
                value = each.prediction.value
                ends = [[value - each.prediction.low], [each.prediction.high - value]]
                axes.errorbar(value, place, xerr=ends, fmt="o", color=COLOURS[0], capsize=4, linewidth=2, markersize=8)
            if each.measured is not None:
                axes.plot(each.measured, place, "D", color=COLOURS[1], markersize=5.5, zorder=4)
        axes.errorbar(
            [],
            [],
            xerr=[],
            fmt="o",
            color=COLOURS[0],
            capsize=4,
            markersize=8,
            label="model, and 95 % interval of a configuration without rows",
        )
        axes.plot([], [], "D", color=COLOURS[1], markersize=5.5, label="measured")
        names = [each.name if each.prediction else f"{each.name}\n(no prediction)" for each in compared]
        axes.set_yticks(range(len(compared)), names)
        axes.set_ylim(len(compared) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
        if any(each.prediction is not None and each.prediction.metric == "speedup" for each in compared):
            axes.axvline(1, color="#777777", linestyle=":", linewidth=1.2)
        axes.set_xlabel(unit)
        axes.set_title(title, loc="left", fontsize=11)
        figure.legend(loc="outside lower right", ncol=2, fontsize=8.5)
        _finish(figure, out, kind)
    return out.getvalue()


def _plain_ticks(axes: Axes, nodes: Sequence[int]) -> None:
    """Numbers of nodes as they are, those that stand too close left out."""
    from matplotlib.ticker import NullLocator

    shown: list[int] = []
    for number in nodes:
        if not shown or number >= shown[-1] * 1.45:
            shown.append(number)
    axes.set_xticks(shown, [str(number) for number in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_numbers(axes.yaxis)


def _plain_numbers(axis: Axis, subs: Sequence[int] = (1, 2, 5)) -> None:
    """Numbers of a logarithmic axis, as a rule at 1, 2 and 5, and not as powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


@contextmanager
def _figure(size: tuple[float, float], kind: str) -> Iterator[tuple[Figure, BytesIO]]:
    """An empty picture; nothing of it depends on the user's own settings, fonts but the names excepted."""
    with extra("model", "draw plots"):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, BytesIO()


def _finish(figure: Figure, out: BytesIO, kind: str) -> None:
    metadata: dict[str, Any] = (
        {"Date": None, "Creator": f"hpcgen {__version__}"} if kind == "svg" else {"Software": None}
    )
    figure.savefig(out, format=kind, dpi=160, metadata=metadata)
