"""What nodes and the network between them should reach: figures of benchmarks, as profiles state them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import Count, Record

Measure = Literal[
    "latency",
    "bandwidth",
    "latency_within_node",
    "bandwidth_within_node",
    "nccl_bus_bandwidth",
    "stream",
    "start_up",
]
"""OSU's latency and bandwidth between two nodes and within one; the bus bandwidth of an all-reduce by nccl-tests or
rccl-tests; the triad of one process of STREAM; the seconds until the ranks of a job have met."""

Unit = Literal["us", "s", "MB/s", "GB/s"]

DIMENSIONS: MappingProxyType[Unit, tuple[str, float]] = MappingProxyType(
    {"us": ("time", 1e-6), "s": ("time", 1.0), "MB/s": ("rate", 1e6), "GB/s": ("rate", 1e9)}
)
"""What a unit measures, and how many seconds or bytes per second one is."""

PRINTED_IN: MappingProxyType[Measure, Unit] = MappingProxyType(
    {
        "latency": "us",
        "bandwidth": "MB/s",
        "latency_within_node": "us",
        "bandwidth_within_node": "MB/s",
        "nccl_bus_bandwidth": "GB/s",
        "stream": "MB/s",
        "start_up": "s",
    }
)
"""The unit in which the benchmark prints each."""

TIMES = frozenset({"latency", "latency_within_node", "start_up"})
"""Measures of which less is better; the others are rates."""

TOLERANCES: MappingProxyType[Measure, float] = MappingProxyType(
    {
        "latency": 0.5,
        "bandwidth": 0.2,
        "latency_within_node": 0.5,
        "bandwidth_within_node": 0.3,
        "nccl_bus_bandwidth": 0.2,
        "stream": 0.15,
        "start_up": 2.0,
    }
)
"""The share of a value by which a measurement may be worse, where the profile does not say it.

Wide, because a false alarm costs trust and real faults (TCP instead of the fabric) cost factors: sites themselves allow
0.05 to 0.15 for bandwidth and 0.15 to 0.6 for latency (LUMI's and CSCS's checks for ReFrame), of their own MPI.
"""

Positive = Annotated[float, msgspec.Meta(gt=0, description="a number above 0")]


class PerformanceFact(Record, frozen=True):
    """One figure that a partition should reach.

    ``at``: the message's size in bytes; without it the smallest one of a latency, the largest of a bandwidth, and the
    average of nccl-tests. ``nodes``, ``ranks_per_node``: the layout that it holds for. ``tolerance``: the share of the
    value by which a measurement may be worse.
    """

    value: Positive
    unit: Unit
    nodes: Count
    ranks_per_node: Count
    at: Count | None = None
    tolerance: Positive | None = None

    def in_unit(self, unit: Unit) -> float | None:
        """The value in another unit; None where that measures something else."""
        (kind, scale), (wanted, size) = DIMENSIONS[self.unit], DIMENSIONS[unit]
        return self.value * scale / size if kind == wanted else None


def tolerance(measure: Measure, fact: PerformanceFact) -> float:
    """The share by which a measurement may be worse: the fact's own, or the usual one."""
    return fact.tolerance or TOLERANCES[measure]


def limit(measure: Measure, fact: PerformanceFact) -> float | None:
    """The worst measurement that passes, in the benchmark's unit; None where the fact's measures something else."""
    value, share = fact.in_unit(PRINTED_IN[measure]), tolerance(measure, fact)
    if value is None:
        return None
    return value * (1 + share if measure in TIMES else 1 - share)
