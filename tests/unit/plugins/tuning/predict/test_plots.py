"""Plots: what is in them as text, and the same SVG each time."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hpcgen.plugins.tuning.predict import plots
from hpcgen.plugins.tuning.predict.fitting import fit
from hpcgen.plugins.tuning.predict.prediction import Prediction
from hpcgen.plugins.tuning.predict.scaling import law_and_misfits, series_of
from tests.unit.plugins.tuning.predict.rows import COMPILED, MACHINES, PAPERS, PLAIN, WORKLOADS, made


def scaling(kind: str) -> bytes:
    found = series_of(PAPERS)
    rows = next(rows for key, rows in found.items() if key[0] == "3dgan training" and "MPI host" in key[2])
    return plots.scaling(
        [plots.ScalingSeries("host's MPI", *law_and_misfits(rows))], "3DGAN", "seconds_per_epoch", kind
    )


def predicted(kind: str) -> bytes:
    pairs = [plots.Pair("box", 110.0, 100.0), plots.Pair("other", 900.0, 1000.0)]
    return plots.predicted(pairs, 1.5, "nets", "samples/s", kind)


def variants(kind: str) -> bytes:
    model = fit(made())
    both = [model.predict(WORKLOADS[0], software, MACHINES[0]) for software in (COMPILED, PLAIN)]
    bars = [plots.ComparisonBar("with xla", both[0] if isinstance(both[0], Prediction) else None, 155.0)]
    return plots.variants([*bars, plots.ComparisonBar("with tvm", None, 99.0)], "net2 on box500", "samples/s", kind)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (
            scaling,
            {"3DGAN", "nodes", "time (s per epoch)", "parallel efficiency (%)", "host's MPI: ring", "512", "1000"},
        ),
        (predicted, {"measured (samples/s)", "95 % interval: × or ÷ 1.50", "box", "other", "predicted = measured"}),
        (variants, {"net2 on box500", "with xla", "with tvm", "(no prediction)", "samples/s", "measured"}),
    ],
)
def test_a_plot_has_its_words_and_is_always_the_same(draw: Callable[[str], bytes], words: set[str]) -> None:
    first = draw("svg")
    assert words <= set(re.findall(r"<text[^>]*>([^<]*)</text>", first.decode())) | _spans(first)
    assert first == draw("svg") and b"<dc:date>" not in first
    assert draw("png").startswith(b"\x89PNG\r\n")


def _spans(svg: bytes) -> set[str]:
    return set(re.findall(r"<tspan[^>]*>([^<]*)</tspan>", svg.decode()))
