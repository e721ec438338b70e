"""Measurements: how fast one program ran, of what software, on which machine, in which layout."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import Count, Date, EnvName, Gigabytes, Name, Record, Source, Text, Version

Positive = Annotated[float, msgspec.Meta(gt=0, description="a number above 0")]
Metric = Literal[
    "samples_per_second",
    "seconds_per_epoch",
    "first_epoch_overhead",
    "seconds_per_batch",
    "seconds",
    "gflops",
    "gigabytes_per_second",
    "memory_gb",
    "device_memory_gb",
    "free_memory_gb",
    "speedup",
]
HIGHER_IS_BETTER = frozenset({"samples_per_second", "gflops", "gigabytes_per_second", "free_memory_gb", "speedup"})
UNITS: Mapping[Metric, str] = MappingProxyType(
    {
        "samples_per_second": "samples/s",
        "seconds_per_epoch": "s per epoch",
        "first_epoch_overhead": "s",
        "seconds_per_batch": "s per batch",
        "seconds": "s",
        "gflops": "GFLOP/s",
        "gigabytes_per_second": "GB/s",
        "memory_gb": "GB",
        "device_memory_gb": "GB",
        "free_memory_gb": "GB",
        "speedup": "times",
    }
)
Kind = Literal["training", "inference", "hpc", "network"]
Precision = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "int8"]


class Workload(Record, frozen=True):
    """What was computed. What is not known is left out, never guessed.

    ``parameters`` and ``layers`` of the network; ``gflop_per_sample``: operations for one sample, of training forward
    and backward, in 10⁹; ``batch``: samples of one rank in one step; ``shape`` of one sample; ``samples`` in an epoch.
    """

    name: Name
    kind: Kind
    parameters: Count | None = None
    layers: Count | None = None
    gflop_per_sample: Positive | None = None
    batch: Count | None = None
    shape: list[Count] = []
    precision: Precision = "fp32"
    samples: Count | None = None


class Software(Record, frozen=True):
    """What computed it.

    ``framework``: its block; ``install``: where it is from; ``compiler``: a graph compiler or engine beside the
    framework's own execution, such as ``xla`` or ``torch.compile``; ``engine``: what ran the container, ``none`` where
    there was none; ``mpi``: whose library the ranks used; ``environment``: variables that were set, an
    empty value where one of the image was taken away; ``content``: the plan hash of the image, and ``blocks`` its
    versions. ``foreign``: the image as it was named, where hpcgen did not build it: ``content`` is its own hash then,
    or its store's digest. ``unknown``: fields of this that nobody could tell of it.
    """

    framework: Name
    version: Version | None = None
    install: Literal["", "hub", "pip", "source", "package"] = ""
    compiler: Text = ""
    stack: Name | None = None
    engine: Text = ""
    mpi: Text = ""
    environment: dict[EnvName, Text] = {}
    blocks: dict[Name, Version] = {}
    content: Text = ""
    foreign: Text = ""
    unknown: list[Text] = []


class Hardware(Record, frozen=True):
    """One node that computed. ``cpu``: archspec's name; ``cores`` and ``gpus`` of the whole node.

    ``peak_gflops`` and ``bandwidth_gbs`` of what computes: of the CPUs of a node, or of one GPU; in the precision of
    the row, from a source or measured by ``gemm`` and ``stream``.
    """

    name: Name
    site: Name | None = None
    partition: Name | None = None
    cpu: Name | None = None
    model: Text = ""
    cores: Count | None = None
    memory_gb: Gigabytes | None = None
    gpu: Text = ""
    gpus: Count | None = None
    fabric: Text = ""
    peak_gflops: Positive | None = None
    bandwidth_gbs: Positive | None = None


class Measurement(Record, frozen=True):
    """One number: ``value`` in the unit of ``metric`` (``UNITS``), over all ranks.

    ``low``, ``high``: its 95 % interval from ``repetitions``. ``speedup`` is the speed in relation to the same with
    ``baseline``. ``interop_threads``: of a rank between operations, where that was asked for. ``measured``: the day;
    ``command`` by which. ``doubtful``: why nobody should trust it.
    """

    workload: Workload
    software: Software
    hardware: Hardware
    metric: Metric
    value: Positive
    nodes: Count = 1
    ranks_per_node: Count = 1
    threads_per_rank: Count | None = None
    interop_threads: Count | None = None
    low: Positive | None = None
    high: Positive | None = None
    repetitions: Count | None = None
    baseline: Software | None = None
    measured: Date | None = None
    command: Text = ""
    source: Source | None = None
    doubtful: Text = ""

    @property
    def ranks(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node


class MeasurementSeries(Record, frozen=True):
    """Rows of a table that differ in little; each is a :class:`Measurement` with what is said here.

    ``workload``, ``software``, ``baseline``, ``hardware`` and ``source`` name entries of the same file; ``note`` is
    added to the source. ``by_nodes``: value by the number of nodes; ``doubtful``: reasons by number of nodes.
    """

    workload: Name
    software: Name
    hardware: Name
    metric: Metric
    by_nodes: dict[Count, Positive]
    source: Name
    note: Text = ""
    ranks_per_node: Count = 1
    threads_per_rank: Count | None = None
    baseline: Name | None = None
    measured: Date | None = None
    doubtful: dict[Count, Text] = {}


class MeasurementTable(Record, frozen=True):
    """A file of ``measurements/`` that people write: what the rows have in common once, then the numbers."""

    sources: dict[Name, Source]
    workloads: dict[Name, Workload]
    software: dict[Name, Software]
    hardware: dict[Name, Hardware]
    series: list[MeasurementSeries]


# in words, for tables and reports


def software_words(software: Software) -> str:
    """``tensorflow 2.1 (source) + xla``."""
    name = f"{software.framework} {software.version}" if software.version else software.framework
    origin = f" ({software.install})" if software.install else ""
    compiler = f" + {software.compiler}" if software.compiler else ""
    mpi = f", MPI {software.mpi}" if software.mpi else ""
    engine = f", {software.engine}" if software.engine else ""
    variables = "".join(f", {key}={value}" for key, value in sorted(software.environment.items()))
    return name + origin + compiler + mpi + engine + variables


def layout_words(row: Measurement) -> str:
    """``4 x 4 x 12``: nodes, ranks on each, threads of each rank; ``?`` where that is not known."""
    return f"{row.nodes} x {row.ranks_per_node} x {row.threads_per_rank or '?'}"


def value_words(row: Measurement) -> str:
    """The number with its unit and, where it is known, its interval."""
    interval = f" ({row.low:.4g} to {row.high:.4g})" if row.low is not None and row.high is not None else ""
    return f"{row.value:.4g}{interval} {UNITS[row.metric]}"
