"""``report.html``: what it tells, and that nothing of a stranger's is markup in it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from hpcgen.plugins.onnx.page import latencies, page
from hpcgen.plugins.onnx.records import (
    Attempt,
    ConversionReport,
    Converted,
    ConvertedVariant,
    HashedFile,
    OnnxFile,
    OutputDifference,
    ReportedModel,
    Timing,
)
from hpcgen.plugins.onnx.timing import compare_timings

HOSTILE = "<script>alert(1)</script>\"'&amp;"
SHA = "0123456789abcdef" * 4
ALONE = {"meta", "br"}


class Reader(HTMLParser):
    """The tags and the text of a page; every element must be closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def timings(**more: Any) -> list[Timing]:
    common = {"model": "net", "batch": 4, **more}
    return [
        Timing(runtime="framework", seconds=[0.04, 0.042, 0.038], **common),
        Timing(
            runtime="onnxruntime", seconds=[0.02, 0.021, 0.019], first=0.1, provider="CPUExecutionProvider", **common
        ),
        Timing(runtime="tvm", variant="tvm", failed=HOSTILE, **common),
    ]


def report(model: ReportedModel, **more: Any) -> ConversionReport:
    given = [HashedFile(path=HOSTILE, sha256=SHA, bytes=1500)]
    common = {"conversion": 1, "ensemble": "pair", "models": {"net": model}, "given": given, "hpcgen": "1.0"}
    return ConversionReport(**{**common, **more})


def converted(**more: Any) -> Converted:
    found = OutputDifference(output="logits", data="data/x.npz", elements=2000, largest_absolute=3e-7, at=[0, 17])
    common: dict[str, Any] = {
        "model": "net",
        "origin": "pytorch",
        "attempts": [Attempt("torch dynamo", failed=HOSTILE), Attempt("torch trace")],
        "file": OnnxFile("model.onnx", 20, 75, 61_100_840, ["model.onnx.data"]),
        "differences": [found],
    }
    return Converted(**{**common, **more})


def whole() -> ReportedModel:
    beyond = OutputDifference(
        output="logits", data="data/x.npz", elements=10, largest_absolute="nan", beyond=0.5, passed=False
    )
    return ReportedModel(
        converted(findings=[HOSTILE]),
        files=[HashedFile("net/model.onnx", SHA, 1000), HashedFile("net/model.onnx.data", SHA, 243_999_000)],
        variants=[
            ConvertedVariant(model="net", variant="int8-dynamic", runtime="onnxruntime", differences=[beyond]),
            ConvertedVariant(model="net", variant="tvm", runtime="tvm", failed=HOSTILE),
        ],
        timings=timings(),
    )


def test_it_loads_nothing_and_holds_no_markup_of_strangers() -> None:
    found = Reader(page(report(whole(), command=HOSTILE)))
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "a", "form"}
    assert not [
        key for _, attributes in found.tags for key in attributes if key.startswith("on") or key in ("src", "href")
    ]
    assert any("default-src 'none'" in (attributes.get("content") or "") for _, attributes in found.tags)
    assert found.text.count(HOSTILE) == 6


def test_it_tells_sizes_differences_hashes_and_what_failed() -> None:
    text = Reader(page(report(whole()))).text
    for expected in (
        "244.0 MB",
        "61,100,840",
        "3e-07",
        SHA,
        "torch trace",
        "not a number",
        "1 model, 1 of which failed: net",
    ):
        assert expected in text
    assert "times as fast" in text and "2.000" in text


def test_a_valid_ensemble_is_called_so() -> None:
    text = Reader(page(report(ReportedModel(converted())))).text
    assert "1 model, all valid" in text and "failed" not in text and "Latencies" not in text


def test_a_model_that_was_not_converted_says_why() -> None:
    broken = ReportedModel(
        converted(file=None, differences=[], failed="an operator without a converter", remedy="write it")
    )
    text = Reader(page(report(broken))).text
    assert "an operator without a converter write it" in text


def test_a_stochastic_model_tells_its_distances() -> None:
    apart = OutputDifference(output="y", data="random", elements=10, distance=0.031, limit=0.2)
    text = Reader(page(report(ReportedModel(converted(differences=[apart]), stochastic=True)))).text
    assert "distance 0.031, by chance up to 0.2" in text and "valid, as distributions" in text


@pytest.mark.parametrize(("scale", "unit"), [(1e-5, "µs"), (1.0, "ms"), (1000.0, "s")])
def test_the_picture_has_a_bar_for_each_figure(scale: float, unit: str) -> None:
    found = [
        Timing(model=each.model, runtime=each.runtime, batch=1, seconds=[one * scale for one in each.seconds])
        for each in timings()
    ]
    drawn = ElementTree.fromstring(latencies(compare_timings(found)))
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(each.attrib["width"]) for each in drawn.iter(f"{space}rect")]
    assert len(widths) == 2 and widths[0] == pytest.approx(2 * widths[1], rel=0.02)
    words = [each.text or "" for each in drawn.iter(f"{space}text")]
    assert "net, batch 1" in words and f"0 {unit}" in words and any("2.00 × as fast" in each for each in words)


def test_a_slow_runtime_does_not_hide_the_others() -> None:
    first, second, _ = timings()
    slow = Timing(model="net", runtime="tvm", batch=4, seconds=[4.0, 4.2, 3.8])
    drawn = ElementTree.fromstring(latencies(compare_timings([first, second, slow])))
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(each.attrib["width"]) for each in drawn.iter(f"{space}rect")]
    assert widths[2] < 3 * widths[0] and len(list(drawn.iter(f"{space}path"))) == 1
    assert any((each.text or "").startswith("4,000 ms") for each in drawn.iter(f"{space}text"))


def test_without_figures_there_is_no_picture() -> None:
    assert latencies(compare_timings([Timing(model="net", runtime="tvm", batch=1, failed="no")])) == ""
