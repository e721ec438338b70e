"""Latencies as a picture: a panel for each model and batch, a bar for each runtime; equal figures give equal SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from hpcgen.core.support.markup import Markup, element, joined
from hpcgen.plugins.onnx.timing import ComparedTiming, runtime_name
from hpcgen.plugins.tuning.bench.intervals import Interval

COLOURS = {"framework": "#7a7a7a", "onnxruntime": "#0072B2", "openvino": "#009E73", "tvm": "#D55E00"}
"""Told apart by those who see few colours, too (Okabe and Ito's)."""

_WIDTH = 860
_LEFT, _RIGHT = 190, 190
_ROW, _BAR = 26, 14
_HEAD, _FOOT = 34, 30
_TICKS = 5
_SLOWEST = 2.5
"""Of what is compared with, how many times its time the axis shows: one slow runtime must not hide all the others."""


def latencies(compared: Sequence[ComparedTiming]) -> Markup:
    """All panels below each other; nothing where nothing was measured."""
    panels, top = [], 0
    for (model, batch), group in groupby(compared, key=lambda each: (each.timing.model, each.timing.batch)):
        rows = [each for each in group if each.seconds is not None]
        if not rows:
            continue
        height = _HEAD + len(rows) * _ROW + _FOOT
        panels.append(element("g", _panel(f"{model}, batch {batch}", rows), transform=f"translate(0 {top})"))
        top += height
    if not panels:
        return Markup("")
    look = {"viewBox": f"0 0 {_WIDTH} {top}", "width": _WIDTH, "height": top, "xmlns": "http://www.w3.org/2000/svg"}
    names = {"role": "img", "aria_label": "Time of one call by model and runtime", "font_size": 13}
    return element("svg", *panels, **look, **names, font_family="system-ui, 'DejaVu Sans', sans-serif")


def _panel(title: str, rows: Sequence[ComparedTiming]) -> Markup:
    ends = [_end(each.seconds) for each in rows if each.seconds is not None]
    first = next((each.seconds.value for each in rows if each.first and each.seconds is not None), max(ends))
    shown = min(max(ends), _SLOWEST * first)
    step = _step(shown)
    most = math.ceil(round(shown / step, 6)) * step
    scale, unit = _unit(most)

    def x(value: float) -> float:
        return round(_LEFT + min(value / most, 1.0) * (_WIDTH - _LEFT - _RIGHT), 1)

    bottom = _HEAD + len(rows) * _ROW
    parts = [element("text", title, x=0, y=18, font_weight="bold", fill="#222")]
    for number in range(round(most / step) + 1):
        at = x(number * step)
        parts.append(element("line", x1=at, x2=at, y1=_HEAD - 4, y2=bottom, stroke="#e2e2e2"))
        label = f"{number * step * scale:g}" + (f" {unit}" if number == 0 else "")
        parts.append(element("text", label, x=at, y=bottom + 15, fill="#666", font_size=11, text_anchor="middle"))
    for place, each in enumerate(rows):
        parts.append(_bar(each, _HEAD + place * _ROW, x, scale, unit))
        if each.seconds is not None and each.seconds.value > most:
            parts.append(_cut(x(most), _HEAD + place * _ROW))
    return joined(parts, "\n")


def _bar(each: ComparedTiming, top: int, x: Callable[[float], float], scale: float, unit: str) -> Markup:
    assert each.seconds is not None
    value, middle = each.seconds.value, top + _ROW / 2
    begin, end = x(0), x(value)
    colour = COLOURS[each.timing.runtime]
    base = top + (_ROW - _BAR) / 2
    width = max(round(end - begin, 1), 0.5)
    parts = [
        element("text", runtime_name(each.timing), x=_LEFT - 8, y=middle + 4.5, text_anchor="end", fill="#222"),
        element("rect", x=begin, y=base, width=width, height=_BAR, fill=colour),
    ]
    if each.seconds.low is not None and each.seconds.high is not None and end < x(math.inf):
        low, high = x(max(each.seconds.low, 0.0)), x(each.seconds.high)
        line = {"stroke": "#222", "stroke_width": 1.2}
        parts.append(element("line", x1=low, x2=high, y1=middle, y2=middle, **line))
        parts += [
            element("line", x1=at, x2=at, y1=middle - 3.5, y2=middle + 3.5, **line)
            for at in (low, high)
            if at < x(math.inf)
        ]
    figure = f"{_figure(value * scale)} {unit}" + (
        f", {each.ratio.value:.2f} × as fast" if each.ratio is not None else ""
    )
    place = max(end, x(_end(each.seconds))) + 8
    parts.append(element("text", figure, x=place, y=middle + 4.5, fill="#222", font_size=12))
    return joined(parts)


def _cut(right: float, top: int) -> Markup:
    """A gap near the end of a bar that is longer than the axis."""
    low, high = top + (_ROW + _BAR) / 2 + 2, top + (_ROW - _BAR) / 2 - 2
    ways = f"M{right - 22} {low} L{right - 14} {high} M{right - 16} {low} L{right - 8} {high}"
    return element("path", d=ways, stroke="white", stroke_width=3, fill="none")


def _end(seconds: Interval) -> float:
    return max(seconds.value, seconds.high or 0.0)


def _figure(value: float) -> str:
    """Three digits, without a power of ten."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _step(most: float) -> float:
    """The distance of the marks of an axis: 1, 2 or 5 times a power of ten, so that there are about five."""
    rough = most / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= rough * 0.999)


def _unit(most: float) -> tuple[float, str]:
    """By what seconds are multiplied for people, and the unit of that."""
    if most >= 10:
        return 1.0, "s"
    return (1e3, "ms") if most >= 1e-3 else (1e6, "µs")
