"""What a model answers: a number with its interval, or why there is none and what would have to be measured."""

from __future__ import annotations

from typing import Literal

from hpcgen.core.model.fields import Count, Name, Record, Text
from hpcgen.plugins.tuning.measurements.cited import RowUsed
from hpcgen.plugins.tuning.measurements.records import UNITS, Metric, Positive

LEVEL = 0.95
"""The share of the intervals that should hold what is measured."""
REACH = 2.0
"""How many times beyond the smallest or largest number of the rows a model may still be asked."""
Situation = Literal["known", "new machine", "new workload", "new machine and workload"]
LeftOut = Literal["machine", "workload"]
ModelName = Literal["linear", "pairs"]


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


class HeldOutTest(Record, frozen=True):
    """How well a model chose on machines, or for workloads, that it had no rows of.

    ``change``: the choice, such as ``xla in tensorflow``; ``groups``: how many machines or workloads were left out, and
    ``questions`` how often there was a choice; of those the model ``answered`` some, and left the others as they were.
    ``cost_percent``: how much longer than with the best choice it takes with the model's, each group with the same
    weight; ``fixed_cost_percent``: with ``fixed``, the better of taking the change ``always`` or ``never``, which is
    known only afterwards. ``gain_low``, ``gain_high``: the 95 % interval of what the model costs less, over the groups;
    ``better``: all of it is above 0. ``half``: half of the 95 % interval of a ratio that it predicts, in logarithms.
    """

    change: str
    left_out: LeftOut
    by: ModelName
    groups: int
    questions: int
    answered: int
    cost_percent: float
    fixed: Literal["always", "never"]
    fixed_cost_percent: float
    gain_low: float | None = None
    gain_high: float | None = None
    half: float | None = None
    better: bool = False

    def __str__(self) -> str:
        model = "pairs of rows" if self.by == "pairs" else "the linear model"
        fixed = f"{self.fixed} taking it costs {self.fixed_cost_percent:.1f} %"
        return f"of each {self.left_out} left out in turn, a choice by {model} costs {self.cost_percent:.1f} %, {fixed}"


def six_digits(value: float) -> float:
    """A number as it is kept: more of its digits say nothing."""
    return float(f"{value:.6g}")
