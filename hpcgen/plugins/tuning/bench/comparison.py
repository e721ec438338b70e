"""Every variant of a workload against its first: what tables and JSON say of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.bench.intervals import Interval, ratio, typical
from hpcgen.plugins.tuning.bench.running import BenchOutcome

NO_DIFFERENCE = "no difference that the noise does not cover"


class Compared(msgspec.Struct, frozen=True):
    """One outcome: its speed, and how many times as fast it is as the first; neither where it has none.

    ``rounds``: how many both ran in.
    """

    outcome: BenchOutcome
    speed: Interval | None = None
    ratio: Interval | None = None
    rounds: int = 0
    first: bool = False

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
        return verdict_of(self.ratio, self.rounds)


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
        return Compared(outcome, speed, rounds=len(both), first=outcome is base)
    mine, others = ([each.rates[number].value for number in both] for each in (outcome, base))
    return Compared(outcome, speed, ratio(mine, others), len(both))
