"""What became of an ensemble, as one page: ``report.html``, which needs nothing else and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hpcgen.core.model.conversion import (
    ConversionReport,
    Converted,
    ConvertedVariant,
    Number,
    OnnxFile,
    OutputDifference,
    ReportedModel,
)
from hpcgen.core.support.markup import Markup, element, joined, safe, table
from hpcgen.core.support.templates import Template
from hpcgen.core.support.units import counted, size
from hpcgen.plugins.onnx.picture import latencies
from hpcgen.plugins.onnx.timing import ComparedTiming, compare_timings, runtime_name

_fill = Template(Path(__file__).with_name("templates") / "report.html").fill
_TIMES = """
Each figure is the median of the rounds; a round measures every runtime once, in a process of its own, and the ratio is
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


def _folder_bytes(model: ReportedModel, folder: str) -> int:
    return sum(each.bytes for each in model.files if each.path.startswith(f"{folder}/"))


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
    notes = [*converted.findings, *_attempts(converted)]
    if notes:
        yield element("ul", joined(element("li", each) for each in notes))
    if converted.differences:
        yield element("h3", "Original against ONNX Runtime")
        yield _differences(converted.differences)
    if model.variants:
        yield element("h3", "Variants")
        yield _variants(name, model)
    for each in model.variants:
        if each.differences:
            yield element(
                "details", element("summary", f"Differences of {each.variant}"), _differences(each.differences)
            )


def _attempts(converted: Converted) -> list[str]:
    return [f"{each.exporter} gave no model: {each.failed}" for each in converted.attempts if each.failed]


def _differences(differences: Sequence[OutputDifference]) -> Markup:
    head = ["output", "data", "elements", "largest absolute", "relative", "at", "original", "converted", "beyond", ""]
    rows: list[list[object]] = []
    for each in differences:
        where = f"[{', '.join(map(str, each.at))}]" if each.at else ""
        numbers = [each.largest_absolute, each.largest_relative]
        beyond = f"{100 * each.beyond:.3g} %"
        if each.distance is not None:
            beyond = f"distance {each.distance:.3g}, by chance up to {each.limit or 0:.3g}"
        verdict = _mark(each.passed, each.wrong or ("within" if each.passed else "beyond"))
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
        bytes_ = _folder_bytes(model, f"{name}/{each.variant}")
        good = not each.failed and _variant_passed(each)
        verdict = "not made" if each.failed else "valid" if good else "failed"
        notes = "; ".join([*([each.failed] if each.failed else []), *each.findings])
        shown = size(bytes_) if bytes_ else ""
        rows.append([each.variant, each.runtime, shown, _largest(each.differences), _mark(good, verdict), notes])
    return table(head, rows, numbers=(2, 3))


def _provenance(report: ConversionReport) -> Iterator[Markup]:
    yield element("h2", "Provenance")
    image = f"the image of the plan {report.image}" if report.image else "the current environment"
    yield element("p", f"Made by hpcgen {report.hpcgen} in {image}.")
    if report.command:
        yield element("p", element("code", report.command))
    if report.blocks:
        blocks = ", ".join(f"{name} {version}" for name, version in sorted(report.blocks.items()))
        yield element("p", f"Blocks: {blocks}.")
    for title, files in (
        ("What was given", report.given),
        ("What was made", [each for model in report.models.values() for each in model.files]),
    ):
        rows = [[each.path, size(each.bytes), element("code", each.sha256)] for each in files]
        yield element("h3", title)
        yield table(["file", "size", "sha256"], rows, numbers=(1,))
