"""Intervals: the published numbers of Student's t, and how often noise that is made up is taken for a difference."""

from __future__ import annotations

import math
import random

import pytest

from hpcgen.plugins.tuning.bench.intervals import geometric, ratio, student95, typical


@pytest.mark.parametrize(("freedom", "published"), [(1, 12.706), (4, 2.776), (30, 2.042), (60, 2.000), (120, 1.980)])
def test_student(freedom: int, published: float) -> None:
    assert student95(freedom) == pytest.approx(published, abs=6e-4)


def test_an_interval_of_ratios_worked_out_by_hand() -> None:
    found = ratio([2.0, 4.4, 3.6], [1.0, 2.0, 2.0])  # ratios 2, 2.2 and 1.8
    mean = math.log(2 * 2.2 * 1.8) / 3
    spread = math.sqrt(sum((math.log(each) - mean) ** 2 for each in (2, 2.2, 1.8)) / 2)
    half = 4.303 * spread / math.sqrt(3)
    assert (found.value, found.low, found.high) == pytest.approx(
        (math.exp(mean), math.exp(mean - half), math.exp(mean + half))
    )
    assert not found.has_one


def test_one_value_has_no_interval() -> None:
    assert geometric([3.0]).low is None
    assert geometric([3.0]).has_one
    assert typical([3.0]).value == pytest.approx(3.0)


def test_the_median_is_within_its_interval() -> None:
    found = typical([1.0, 100.0, 100.0, 100.0, 100.0])
    assert found.low is not None and found.high is not None
    assert found.low <= found.value == 100.0 <= found.high


def rounds(made: random.Random, faster: float) -> tuple[list[float], list[float]]:
    """Five rounds on a machine that others slow down by turns: both variants of a round alike, and each by itself."""
    first, other = [], []
    load = 1.0
    for _ in range(5):
        load = max(0.2, load * math.exp(made.gauss(0, 0.3)))
        first.append(100 / load * math.exp(made.gauss(0, 0.03)))
        other.append(100 * faster / load * math.exp(made.gauss(0, 0.03)))
    return first, other


def test_noise_alone_is_taken_for_a_difference_one_time_in_twenty() -> None:
    made = random.Random(7)
    alarms = sum(not ratio(*reversed(rounds(made, 1.0))).has_one for _ in range(4000))
    assert 0.04 < alarms / 4000 < 0.06


def test_a_difference_of_a_tenth_is_seen_beneath_swings_of_a_third() -> None:
    made = random.Random(8)
    seen = sum((ratio(*reversed(rounds(made, 1.1))).low or 0) > 1 for _ in range(400))
    assert seen > 360
    # Without the pairs it would not be.
    apart = 0
    for _ in range(400):
        first, other = (geometric(each) for each in rounds(made, 1.1))
        apart += (other.low or 0) > (first.high or 0)
    assert apart < 40
