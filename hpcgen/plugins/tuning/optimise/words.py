"""Estimates and reasons in words, for the report and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgen.plugins.tuning.measurements.records import UNITS
from hpcgen.plugins.tuning.optimise.records import Estimate

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.optimise.judge import Judged


def estimate_words(estimate: Estimate) -> str:
    """``predicted 1.09 times (0.8 to 1.4)``; ``unknown`` without a value."""
    if estimate.value is None or estimate.metric is None:
        return "unknown"
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f" ({estimate.low:.4g} to {estimate.high:.4g})"
    return f"{estimate.basis} {estimate.value:.4g} {UNITS[estimate.metric]}{interval}"


def basis_words(each: Judged, best: Judged) -> str:
    """Why a candidate that could be planned is taken, or not."""
    if each is best:
        if each.ratio is None or each.ratio == 1.0:
            return "the default; no faster choice is known"
        return f"{each.ratio:.3g} times as fast as the default"
    if each.ratio is None:
        return each.estimate.why or "it has no measurements"
    if best.ratio is not None and each.ratio <= best.ratio:
        return "slower" if each.ratio < best.ratio else "no faster"
    return "perhaps faster: not measured here, or its interval does not exclude that it is slower"
