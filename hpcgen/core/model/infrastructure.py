"""A target system described in a request itself, where no site profile of it is there.

Its fields are those of the infrastructure descriptions of MODAK (SODALITE-EU/application-optimisation).
"""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import Count, Name, Record, Text, matching
from hpcgen.core.model.site import SchedulerName

MemorySize = Annotated[
    str, matching(r"^\d{1,16}(\.\d{1,6})? ?([kKMGTP]i?)?[bB]?$(?!\n)", "bytes, or a number with a unit", "512GiB")
]
"""Of units that end in ``iB`` a step is 1024, of the others 1000."""

StorageUrl = Annotated[
    str,
    matching(r"^[a-z][a-z0-9+.-]*://[A-Za-z0-9._~/+@%:,=-]*$(?!\n)", "the URL of a place for files", "file:///scratch"),
]
StorageClass = Literal["default-common", "default-high", "default-ssd", "default-ultra_high"]


class NodeCpu(Record, frozen=True):
    """One CPU, that is, socket. ``nthreads``: per core. ``arch`` and ``microarch`` are archspec's names."""

    arch: Name
    ncores: Count
    microarch: Name | None = None
    nthreads: Count = 1


class Accelerator(Record, frozen=True):
    """One accelerator."""

    type: Literal["gpu", "fpga", "tpu"]
    model: Text


class InfrastructureNode(Record, frozen=True):
    """One node: ``ncpus`` sockets, ``naccel`` accelerators."""

    ncpus: Count
    cpu: NodeCpu
    memory: MemorySize
    naccel: Count | None = None
    accel: Accelerator | None = None
    storage: dict[StorageUrl, StorageClass] = {}


class InfrastructurePartition(Record, frozen=True):
    """``nnodes`` nodes of one kind."""

    nnodes: Count
    node: InfrastructureNode
    default: bool = False
    storage: dict[StorageUrl, StorageClass] = {}


PartitionName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^([a-z0-9][a-z0-9._-]{0,63}|\*)$(?!\n)", description="a name, or * for the only one", examples=["gpu"]
    ),
]


class Infrastructure(Record, frozen=True):
    """The system, as far as the request knows it. ``name`` is what its new profile is called."""

    partitions: dict[PartitionName, InfrastructurePartition]
    name: Name = "described"
    description: Text = ""
    scheduler: SchedulerName | None = None
    storage: dict[StorageUrl, StorageClass] = {}
