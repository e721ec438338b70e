"""Latencies that were measured in rounds: each runtime against the first of its model and batch, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from hpcgen.plugins.onnx.records import Timing
from hpcgen.plugins.tuning.bench.comparison import verdict_of
from hpcgen.plugins.tuning.bench.intervals import Interval, ratio, typical


class ComparedTiming(msgspec.Struct, frozen=True):
    """One runtime at one batch.

    ``seconds`` of one call, and its 95 % interval; ``ratio``: how many times as fast as the first, over the ``rounds``
    that both have.
    """

    timing: Timing
    seconds: Interval | None = None
    ratio: Interval | None = None
    rounds: int = 0
    first: bool = False

    @property
    def per_second(self) -> float | None:
        """Samples per second."""
        return self.timing.batch / self.seconds.value if self.seconds else None

    @property
    def verdict(self) -> str:
        """In words: why there is no figure, or what the interval says."""
        if self.seconds is None:
            return self.timing.failed or "not measured"
        if self.timing.failed:
            return f"after {len(self.timing.seconds)} rounds: {self.timing.failed}"
        if self.first:
            return "the baseline of the comparison"
        return verdict_of(self.ratio, self.rounds)


def compare_timings(timings: Sequence[Timing]) -> list[ComparedTiming]:
    """Each timing against the first of its model and batch that has figures, in their order.

    Rounds are paired by their number: a runtime that failed has only the first ones.
    """
    found: list[ComparedTiming] = []
    for _, group in groupby(timings, key=lambda each: (each.model, each.batch)):
        cells = list(group)
        base = next((each for each in cells if each.seconds), None)
        found += [_against(each, base) for each in cells]
    return found


def _against(timing: Timing, base: Timing | None) -> ComparedTiming:
    if not timing.seconds or base is None:
        return ComparedTiming(timing)
    seconds = typical(timing.seconds)
    both = min(len(timing.seconds), len(base.seconds))
    if timing is base:
        return ComparedTiming(timing, seconds, rounds=both, first=True)
    # What takes half the time is twice as fast.
    return ComparedTiming(timing, seconds, ratio(base.seconds[:both], timing.seconds[:both]), both)


def runtime_name(timing: Timing) -> str:
    """What computed, for people: ``framework``, ``onnxruntime``, ``onnxruntime ort-all``."""
    if not timing.variant or timing.variant.startswith(timing.runtime):
        return timing.variant or timing.runtime
    return f"{timing.runtime} {timing.variant}"
