"""What became of an ensemble, as one page: ``report.html``, which needs nothing else and loads nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from hpcgen.core.support.markup import Markup, element, joined, safe, table
from hpcgen.core.support.templates import Template
from hpcgen.core.support.units import counted, size
from hpcgen.plugins.onnx.records import (
    ConversionReport,
    ConvertedVariant,
    Number,
    OnnxFile,
    OutputDifference,
    ReportedModel,
    TriedLengths,
)
from hpcgen.plugins.onnx.timing import ComparedTiming, compare_timings, runtime_name
from hpcgen.plugins.tuning.bench.intervals import Interval

_fill = Template(Path(__file__).with_name("templates") / "report.html").fill
_TIMES = """
Each figure is the median of the rounds; a round measures every runtime once, in a separate process, and the ratio is
taken round by round against the first of the model and batch, with its 95 % interval.
"""


def page(report: ConversionReport) -> str:
    """The page of a report. All text is escaped: names and findings come from programs that ran foreign code."""
    title = f"{report.ensemble}: models as ONNX"
    return _fill(title=safe(title), body=joined(_parts(title, report), "\n"))


def _parts(title: str, report: ConversionReport) -> Iterator[Markup]:
    failed = [name for name, model in report.models.items() if not _passed(model)]
    count = counted(len(report.models), "model")
    verdict = f"{count}, {len(failed)} of which failed: {', '.join(failed)}" if failed else f"{count}, all valid"
    yield element("h1", title)
    yield element("p", _mark(not failed, verdict), ". ", _target(report), class_="lead")
    yield _summary(report)
    compared = [each for model in report.models.values() for each in compare_timings(model.timings)]
    if compared:
        yield element("h2", "Latencies")
        yield element("p", _TIMES.strip(), class_="lead")
        yield latencies(compared)
        yield times_table(compared)
    for name, model in report.models.items():
        yield from _model(name, model)
    yield from _provenance(report)


def _target(report: ConversionReport) -> str:
    place = f"{report.site}, partition {report.partition}" if report.site else "any machine"
    runtime = f"ONNX Runtime {report.runtime}" if report.runtime else "ONNX Runtime"
    opset = f", opsets up to {report.opset}" if report.opset else ""
    return f"Target: {place}; {runtime}, provider {report.provider}{opset}."


def _passed(model: ReportedModel) -> bool:
    return model.passed and all(_variant_passed(each) for each in model.variants)


def _variant_passed(variant: ConvertedVariant) -> bool:
    return all(each.passed for each in variant.differences)


def _mark(good: bool, text: str) -> Markup:
    return element("span", text, class_="good" if good else "bad")


def _summary(report: ConversionReport) -> Markup:
    head = ["model", "from", "exporter", "opset", "nodes", "parameters", "size", "largest difference", "validation"]
    rows: list[list[object]] = []
    for name, model in report.models.items():
        converted, file = model.converted, model.converted.file
        by = next((each.exporter for each in converted.attempts if not each.failed), "")
        shape = [file.opset, f"{file.nodes:,}", f"{file.parameters:,}"] if file else ["", "", ""]
        bytes_ = size(_bytes(model, name, file)) if file else ""
        rows.append(
            [name, converted.origin, by, *shape, bytes_, _largest(converted.differences), _verdict(model.passed, model)]
        )
    return table(head, rows, numbers=(3, 4, 5, 6, 7))


def _verdict(good: bool, model: ReportedModel) -> Markup:
    return _mark(good, ("valid, as distributions" if model.stochastic else "valid") if good else "failed")


def _bytes(model: ReportedModel, folder: str, file: OnnxFile) -> int:
    """Of a file and of the weights beside it."""
    names = {f"{folder}/{name}" for name in (file.name, *file.external)}
    return sum(each.bytes for each in model.files if each.path in names)


def _largest(differences: Sequence[OutputDifference]) -> str:
    values = [each.largest_absolute for each in differences]
    if any(isinstance(each, str) for each in values):
        return "not a number"
    return f"{max((float(each) for each in values), default=0.0):.2g}" if values else ""


def times_table(compared: Sequence[ComparedTiming]) -> Markup:
    """Latency and throughput of every runtime, with ratios and their intervals."""
    head = ["model", "batch", "runtime", "version", "provider", "ms per call", "95 %", "samples/s", "first call (ms)"]
    rows: list[list[object]] = []
    for each in compared:
        timing, seconds = each.timing, each.seconds
        known = (
            [f"{seconds.value * 1e3:.4g}", _bounds(seconds.low, seconds.high, 1e3), f"{each.per_second:.4g}"]
            if seconds
            else ["", "", ""]
        )
        first = f"{timing.first * 1e3:.4g}" if timing.first else ""
        ratio = [f"{each.ratio.value:.3f}", _bounds(each.ratio.low, each.ratio.high)] if each.ratio else ["", ""]
        name = [timing.model, timing.batch, runtime_name(timing), timing.version or "", timing.provider]
        rows.append([*name, *known, first, *ratio, each.verdict])
    return table([*head, "times as fast", "95 %", ""], rows, numbers=(1, 5, 6, 7, 8, 9, 10))


def _bounds(low: float | None, high: float | None, scale: float = 1.0) -> str:
    return "" if low is None or high is None else f"{low * scale:.4g} to {high * scale:.4g}"


def _model(name: str, model: ReportedModel) -> Iterator[Markup]:
    converted = model.converted
    yield element("h2", name)
    versions = ", ".join(f"{package} {version}" for package, version in sorted(converted.versions.items()))
    yield element("p", f"From {converted.origin}{': ' if versions else ''}{versions}.", class_="lead")
    if converted.failed:
        yield element("p", _mark(False, converted.failed), f" {converted.remedy}")
    failed = [f"{each.exporter} was not used: {each.failed}" for each in converted.attempts if each.failed]
    notes = [*converted.findings, *failed]
    if notes:
        yield element("ul", joined(element("li", each) for each in notes))
    if converted.fixed:
        kept = ", ".join(f"{axis} {length}" for axis, length in converted.fixed.items())
        yield element("p", _mark(False, f"The ONNX model takes no other lengths than {kept}."))
    if converted.tried:
        yield element("h3", "What was tried")
        yield _tried(converted.tried)
    if converted.differences:
        yield element("h3", "Original against ONNX Runtime")
        yield _differences(converted.differences)
    if model.variants:
        yield element("h3", "Variants")
        yield _variants(name, model)
    for each in model.variants:
        if each.differences:
            summary = element("summary", f"What was tried, and differences of {each.variant}")
            tried = [_tried(each.tried)] if each.tried else []
            yield element("details", summary, *tried, _differences(each.differences))


def _tried(tried: Sequence[TriedLengths]) -> Markup:
    """The lengths of all axes in each set of inputs, and what came of it."""
    axes = list(dict.fromkeys(axis for each in tried for axis in each.axes))
    rows: list[list[object]] = []
    for each in tried:
        verdict = _mark(each.passed, "within" if each.passed else "beyond")
        said = [f"the original does not run: {each.refused}"] if each.refused else [verdict]
        largest = "" if each.refused else _short(each.largest_absolute)
        rows.append([each.data, *(each.axes.get(axis, "") for axis in axes), largest, *said])
    return table(["data", *axes, "largest difference", ""], rows, numbers=tuple(range(1, len(axes) + 2)))


def _differences(differences: Sequence[OutputDifference]) -> Markup:
    head = ["output", "data", "elements", "largest absolute", "relative", "at", "original", "converted", "beyond", ""]
    rows: list[list[object]] = []
    for each in differences:
        where = f"[{', '.join(map(str, each.at))}]" if each.at else ""
        numbers = [each.largest_absolute, each.largest_relative]
        beyond = f"{100 * each.beyond:.3g} %"
        if each.distance is not None:
            beyond = f"distance {each.distance:.3g}, by chance up to {each.limit or 0:.3g}"
        said = ("within" if each.passed else "beyond") + (f", {each.shapes}" if each.shapes else "")
        verdict = _mark(each.passed, each.wrong or said)
        values = [where, _number(each.original), _number(each.converted), beyond, verdict]
        rows.append([each.output, each.data, f"{each.elements:,}", *map(_short, numbers), *values])
    return table(head, rows, numbers=(2, 3, 4, 6, 7, 8))


def _short(value: Number) -> str:
    return value if isinstance(value, str) else f"{value:.2g}"


def _number(value: Number) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _variants(name: str, model: ReportedModel) -> Markup:
    head = ["variant", "runs by", "size", "largest difference", "validation", "notes"]
    rows: list[list[object]] = []
    for each in model.variants:
        bytes_ = sum(file.bytes for file in model.files if file.path.startswith(f"{name}/{each.variant}/"))
        good = not each.failed and _variant_passed(each)
        verdict = "not made" if each.failed else "valid" if good else "failed"
        notes = "; ".join([*([each.failed] if each.failed else []), *each.findings])
        shown = size(bytes_) if bytes_ else ""
        rows.append([each.variant, each.runtime, shown, _largest(each.differences), _mark(good, verdict), notes])
    return table(head, rows, numbers=(2, 3))


def _provenance(report: ConversionReport) -> Iterator[Markup]:
    yield element("h2", "Provenance")
    image = f"the image of the plan {report.image}" if report.image else "the current environment"
    if report.foreign:
        image = f"an image that hpcgen did not build ({report.image or 'its files could not all be read'})"
    yield element("p", f"Made by hpcgen {report.hpcgen} in {image}.")
    if report.command:
        yield element("p", element("code", report.command))
    if report.blocks:
        blocks = ", ".join(f"{name} {version}" for name, version in sorted(report.blocks.items()))
        yield element("p", f"{'Packages' if report.foreign else 'Blocks'}: {blocks}.")
    for title, files in (
        ("Inputs", report.given),
        ("Results", [each for model in report.models.values() for each in model.files]),
    ):
        rows = [[each.path, size(each.bytes), element("code", each.sha256)] for each in files]
        yield element("h3", title)
        yield table(["file", "size", "sha256"], rows, numbers=(1,))


# Latencies as a picture: a panel for each model and batch, a bar for each runtime; equal figures give equal SVG.

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
