"""What `hpcgen bench` and `hpcgen tune` compared, as one page with a plot for each workload. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hpcgen.core.support.markup import Markup, element, html_page, table
from hpcgen.core.support.processes import printable
from hpcgen.core.support.units import shortened
from hpcgen.plugins.tuning.bench.comparison import Compared

_LEFT, _WIDTH, _ROW, _TOP = 300.0, 900.0, 34.0, 14.0
_NAME = 44
_BLUE, _GREEN, _GREY = "#3b5bdb", "#2b8a3e", "#868e96"
_HOW = (
    "Each dot is a round in which both ran: how many times as fast as the baseline. The line is the 95 % interval of "
    "the geometric mean. What is faster with confidence, in both halves of the rounds, is green."
)


def comparison_page(title: str, compared: Sequence[Compared], verdict: str = "") -> str:
    """The page; ``verdict``: what was chosen, in a sentence."""
    parts: list[object] = [element("p", element("strong", verdict))] if verdict else []
    parts.append(element("p", _HOW))
    for name, group in groupby(compared, key=lambda each: each.outcome.workload.name):
        rows = list(group)
        parts += [element("h2", name), _plot(rows), _figures(rows)]
    return html_page(title, *parts)


def _figures(compared: Sequence[Compared]) -> Markup:
    rows = [
        [str(each.outcome.variant), *([f"{each.speed.value:.4g}"] if each.speed else [""])]
        + ([f"{each.ratio.value:.3f}"] if each.ratio else [""])
        + [printable(each.verdict)]
        for each in compared
    ]
    return table(["variant", "speed", "ratio", "verdict"], rows)


def _plot(compared: Sequence[Compared]) -> Markup:
    known = [value for each in compared for value in _values(each)]
    low, high = min([1.0, *known]), max([1.0, *known])
    margin = (high - low) * 0.05 or 0.1
    low, high = low - margin, high + margin

    def x(value: float) -> str:
        return f"{_LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - 20):.1f}"

    height = _TOP + _ROW * len(compared) + 30
    one = {"x1": x(1), "x2": x(1), "y1": _TOP, "y2": height - 26, "stroke": _GREY, "stroke_dasharray": "4 3"}
    parts = [element("line", **one)]
    parts += [
        element("text", f"{value:.3g} ×", x=x(value), y=height - 6, font_size=12, text_anchor="middle")
        for value in dict.fromkeys((low + margin, 1.0, high - margin))
        if value == 1 or abs(value - 1) > (high - low) / 10
    ]
    for number, each in enumerate(compared):
        y = _TOP + _ROW * (number + 0.5)
        colour = _GREEN if each.is_confirmed else _BLUE
        name = shortened(str(each.outcome.variant), _NAME)
        parts.append(element("text", name, x=_LEFT - 10, y=y + 4, font_size=13, text_anchor="end"))
        ratio = each.ratio
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            ends = {"x1": x(ratio.low), "x2": x(ratio.high), "y1": y, "y2": y}
            parts.append(element("line", **ends, stroke=colour, stroke_width=3))
        dots = [element("circle", cx=x(pair), cy=y, r=3, fill=colour, fill_opacity=0.45) for pair in each.pairs]
        parts += dots
        if ratio is not None:
            parts.append(element("rect", x=float(x(ratio.value)) - 2, y=y - 9, width=4, height=18, fill=colour))
    about = "Speed of each variant against the baseline"
    look = {"viewBox": f"0 0 {_WIDTH:g} {height:g}", "role": "img", "aria_label": about}
    return element("svg", *parts, **look, xmlns="http://www.w3.org/2000/svg")


def _values(each: Compared) -> list[float]:
    ends = (each.ratio.low, each.ratio.value, each.ratio.high) if each.ratio is not None else ()
    return [*each.pairs, *(end for end in ends if end is not None)]
