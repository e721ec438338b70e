"""What blocks declare before versions are chosen: their options, what they need, and what the site imposes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from hpcgen.blocks.guarded import guarded
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.network import Network
from hpcgen.core.model.nodes import Fabric, GpuVendor
from hpcgen.core.model.site import Partition, Site


class Facts(msgspec.Struct, frozen=True):
    """What of a site a block may know."""

    partition: Partition
    fabric: Fabric
    mpi: HostMpi | None
    network: Network
    architecture: str

    @staticmethod
    def of(site: Site, partition: str) -> Facts:
        """The facts of one partition of a site."""
        return Facts(
            partition=site.partitions[partition],
            fabric=site.fabric_of(partition),
            mpi=site.mpi,
            network=site.network,
            architecture=site.system.architecture,
        )

    def runtime_ranges(self, vendor: GpuVendor) -> list[SiteRange]:
        """The releases of a vendor's run time that the host's MPI is linked with, for the block that brings it."""
        own = self.mpi.gpu.get(vendor) if self.mpi is not None else None
        if own is None or not own.runtime:
            return []
        return [SiteRange(own.runtime, f"mpi.gpu.{vendor}.runtime", "the host's MPI for GPUs is linked with that")]

    @property
    def gpu_fabric(self) -> str:
        """The kind of network between GPUs of several nodes."""
        gpu = self.partition.gpu
        return (gpu.fabric if gpu is not None else None) or self.fabric.kind

    def listed(self, name: str) -> str:
        """What the wheel list ``name`` is called for the node's architecture, where it has compiled packages."""
        return listed_for(name, self.architecture)


def listed_for(name: str, architecture: str) -> str:
    """What the wheel list ``name`` is called for an architecture: x86_64 goes without saying."""
    return name if architecture == "x86_64" else f"{name}-{architecture}"


class BlockOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of a block's typed options."""


class Situation(msgspec.Struct, frozen=True):
    """What is known before versions are chosen: the site's facts and the block's own options."""

    facts: Facts
    options: Any


Condition = Callable[[Situation], bool]


class Need(msgspec.Struct, frozen=True):
    """That a block requires another block, or a virtual such as ``mpi``, beside it.

    Parameters
    ----------
    name: block or virtual.
    versions: accepted range; a release row may narrow it in ``accepts``.
    build_only: only the builder stage has it.
    when: the need holds only if this is true.
    enough: values of the other's options that are enough for this block, such as ``obtain=wheels``. They become
        the other's defaults where all that need it say the same.
    providers: of a virtual the blocks that will do; empty for all.
    """

    name: str
    versions: str = ""
    build_only: bool = False
    when: Condition | None = None
    enough: Mapping[str, str] = {}
    providers: tuple[str, ...] = ()


def need(
    name: str,
    versions: str = "",
    *,
    build_only: bool = False,
    when: Condition | None = None,
    enough: Mapping[str, str] | None = None,
    providers: Iterable[str] = (),
) -> Need:
    """Declare a need; see :class:`Need`."""
    return Need(name, versions, build_only, guarded(when) if when else None, enough or {}, tuple(providers))


class SiteRange(msgspec.Struct, frozen=True):
    """A range of a block's versions that the site imposes: ``path`` is the fact in the profile."""

    versions: str
    path: str
    reason: str
