"""Medians, and 95 % intervals of speeds and of ratios of speeds.

Speeds are positive and what disturbs them multiplies, so logarithms are what is averaged. Variants run in rounds, one
after the other, and each is compared with the first of its own round: what slows a machine for a while slows both. The
interval of the mean of the logarithms of these ratios is Student's; a test with noise that is made up holds how often
it leaves out the truth.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom.  Source: NIST/SEMATECH e-Handbook, 1.3.6.7.2"""


class Interval(msgspec.Struct, frozen=True):
    """A number, and where it lies with 95 % confidence; without bounds where one value alone is known."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def has_one(self) -> bool:
        """Whether a ratio may as well be 1: there is no difference that the noise does not cover."""
        return self.low is None or self.high is None or self.low <= 1 <= self.high


def student95(freedom: int) -> float:
    """Student's t for a two-sided 95 %; beyond the table by Cornish and Fisher's expansion."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def geometric(values: Sequence[float]) -> Interval:
    """The geometric mean of positive numbers, and its interval."""
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Interval(math.exp(mean))
    half = student95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def over_all(groups: Sequence[Sequence[float]]) -> Interval:
    """The geometric mean of the geometric means of groups, and its interval; Welch and Satterthwaite's freedom."""
    logs = [[math.log(value) for value in each] for each in groups]
    mean = statistics.fmean(statistics.fmean(each) for each in logs)
    if any(len(each) < 2 for each in logs):
        return Interval(math.exp(mean))
    parts = [(statistics.variance(each) / len(each), len(each) - 1) for each in logs]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / own for part, own in parts) if total else 1
    half = student95(max(1, int(freedom))) * math.sqrt(total) / len(groups)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def typical(values: Sequence[float]) -> Interval:
    """The median of speeds, with the interval of their geometric mean, widened to the median where that is outside."""
    median, around = statistics.median(values), geometric(values)
    if around.low is None or around.high is None:
        return Interval(median)
    return Interval(median, min(around.low, median), max(around.high, median))


def ratio(values: Sequence[float], first: Sequence[float]) -> Interval:
    """How many times as fast, round by round."""
    return geometric([value / base for value, base in zip(values, first, strict=True)])
