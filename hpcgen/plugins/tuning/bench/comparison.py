"""Every variant of a workload against its first: what tables and JSON say of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.bench.intervals import Interval, geometric, over_all, ratio, typical
from hpcgen.plugins.tuning.bench.running import BenchOutcome

NO_DIFFERENCE = "no difference that the noise does not cover"

DRIFT = 1.5
"""A machine has changed whose fastest and slowest round of one variant differ by more."""

_STEADY = 1.3
"""Largest quotient of pairs on a machine that did not change within them; single starts differ by 7 % up and down."""

_AGREEING = 6
"""Rounds that have to agree on a machine that changed: by chance fewer do so in more than 5 % of the cases."""


class Compared(msgspec.Struct, frozen=True):
    """One outcome: its speed, and how many times as fast it is as the first; neither where it has none.

    ``pairs``: the quotient of each round that both ran in. ``drift``: how many times as fast as its slowest round the
    fastest of the first is, or of this one, if that is more.
    """

    outcome: BenchOutcome
    speed: Interval | None = None
    ratio: Interval | None = None
    pairs: list[float] = []
    drift: float = 1.0
    first: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether its rounds allow a conclusion although the machine may have changed meanwhile.

        What changes between rounds does not matter, but within a round it hits one side alone. So the pairs are alike,
        or all of many agree on which is faster.
        """
        low, high = min(self.pairs, default=1.0), max(self.pairs, default=1.0)
        agree = len(self.pairs) >= _AGREEING and (low > 1 or high < 1)
        return self.drift <= DRIFT or high / low <= _STEADY or agree

    @property
    def is_confirmed(self) -> bool:
        """Whether it is faster by the first half of its rounds alone, and by the second alone.

        By chance one of 40 without any effect is by all its rounds, and one of 1600 by both halves.
        """
        half = len(self.pairs) // 2
        lows = [geometric(each).low for each in (self.pairs[:half], self.pairs[half:]) if each]
        return self.verdict == "faster" and all(low is not None and low > 1 for low in lows)

    @property
    def verdict(self) -> str:
        """In words: why there is none, or what the interval says."""
        if self.outcome.reason and self.speed is None:
            return self.outcome.reason
        if self.outcome.reason:
            return f"in {counted(len(self.outcome.rates), 'round')} alone: {self.outcome.reason}"
        if self.speed is None:
            return "not run"
        if self.first or self.ratio is None:
            return "the baseline of the comparison" if self.first else ""
        if not self.is_settled:
            return f"the machine changed by {self.drift:.1f} ×: no conclusion"
        return verdict_of(self.ratio, len(self.pairs))


def verdict_of(ratio: Interval | None, rounds: int) -> str:
    """What the interval of a ratio of speeds says, of so many rounds."""
    if ratio is None or rounds < 2:
        return "one round does not show the noise"
    if ratio.has_one:
        return NO_DIFFERENCE
    return "faster" if ratio.value > 1 else "slower"


def compare(outcomes: Sequence[BenchOutcome]) -> list[Compared]:
    """Each outcome against the first of its workload that ran, in their order."""
    found: list[Compared] = []
    for _, group in groupby(outcomes, key=lambda each: each.workload.name):
        cells = list(group)
        base = next((each for each in cells if each.rates), None)
        found += [_against(each, base) for each in cells]
    return found


def _against(outcome: BenchOutcome, base: BenchOutcome | None) -> Compared:
    if not outcome.rates or base is None:
        return Compared(outcome)
    speed = typical(outcome.values)
    both = sorted(outcome.rates.keys() & base.rates.keys())
    if outcome is base or not both:
        return Compared(outcome, speed, first=outcome is base)
    mine, others = ([each.rates[number].value for number in both] for each in (outcome, base))
    pairs = [one / other for one, other in zip(mine, others, strict=True)]
    return Compared(outcome, speed, ratio(mine, others), pairs, max(drift_of(mine), drift_of(others)))


def over_workloads(compared: Sequence[Compared]) -> dict[tuple[str, str], Interval]:
    """By image and variant: how many times as fast it is as the first, in the geometric mean of several workloads.

    Only of what ran in all of them.
    """
    names = {each.outcome.workload.name for each in compared}
    found: dict[tuple[str, str], list[list[float]]] = {}
    for each in compared:
        if each.ratio is not None:
            found.setdefault((each.outcome.case.image, str(each.outcome.variant)), []).append(each.pairs)
    return {key: over_all(pairs) for key, pairs in found.items() if len(pairs) == len(names) > 1}


def drift_of(rates: Sequence[float]) -> float:
    """How many times as fast as the slowest the fastest is; 1 without any."""
    return max(rates) / min(rates) if rates else 1.0
