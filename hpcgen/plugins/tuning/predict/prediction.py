"""What a model answers: a number with its interval, or why there is none and what would have to be measured."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import Count, Name, Record, Text
from hpcgen.plugins.tuning.measurements.records import UNITS, Metric, Positive

LEVEL = 0.95
"""The share of the intervals that should hold what is measured."""
REACH = 2.0
"""How many times beyond the smallest or largest number of the rows a model may still be asked."""
NodeCount = Annotated[int, msgspec.Meta(ge=1)]
Situation = Literal["known", "new machine", "new workload", "new machine and workload"]


class MeasureNext(Record, frozen=True):
    """The measurement that would help most: what to run, with what, where."""

    workload: Name
    framework: Name
    machine: Name
    compiler: Text = ""
    nodes: Count = 1
    ranks_per_node: Count = 1
    threads_per_rank: Count | None = None

    def __str__(self) -> str:
        compiler = f" and {self.compiler}" if self.compiler else ""
        nodes = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        return f"{self.workload} with {self.framework}{compiler} on {self.machine}{nodes}"


class RowUsed(Record, frozen=True):
    """A row that a prediction rests on: which one, in words, and what was measured."""

    label: str
    metric: Metric
    value: Positive
    source: str = ""


class Prediction(Record, frozen=True):
    """``value`` in the unit of ``metric``; ``low`` to ``high`` is its 95 % interval.

    ``rows_used``: the rows of the model that are nearest to what was asked. ``by``: which model. ``situation``: what of
    the question no row has; the interval is that of such questions.
    """

    value: Positive
    low: Positive
    high: Positive
    rows_used: list[RowUsed]
    metric: Metric
    by: str
    situation: Situation

    @property
    def unit(self) -> str:
        """Of value, low and high."""
        return UNITS[self.metric]


class PredictionRefusal(Record, frozen=True):
    """Why there is no prediction, and the measurement after which there would be one."""

    reason: str
    measure_next: MeasureNext | None = None
