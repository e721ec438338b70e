"""The arguments and results of checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from hpcgen.backends.engines import Engine
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.mpi_packages import MpiPackageTable
from hpcgen.core.model.plan import Finding, Plan, PlannedBlock
from hpcgen.core.model.release import Release
from hpcgen.core.model.site import Partition, Site

if TYPE_CHECKING:
    from hpcgen.core.model.image_facts import ImageFacts
    from hpcgen.recipe.stages import Assembly

Outcome = Literal["holds", "broken", "doubtful", "unknown", "skipped"]


class Check(msgspec.Struct, frozen=True):
    """One promise between image and host.

    outcome: ``doubtful`` may hold or not; ``unknown``: a fact is missing; ``skipped``: it does not arise.
    reason: what it rests on, one sentence.
    expected, remedy: what would have been right, and what to do.
    path: the fact of the profile that decides, such as ``mpi.version``.
    """

    name: str
    outcome: Outcome
    reason: str
    remedy: str = ""
    expected: str = ""
    path: str = ""


class Untried(NamedTuple):
    """A package of the project that a block would bring, in a version that no table has.

    ``release``: what tables say of the range that the version is in. ``near``: the nearest version that they have.
    ``agrees``: as :attr:`hpcgen.blocks.base.Block.agrees`.
    """

    block: str
    release: Release
    near: str
    agrees: Mapping[str, str]


class ContractCase(msgspec.Struct, frozen=True):
    """A plan, and the facts of its image that the checks use.

    engine: the engine that starts the image, in the version of the profile.
    host: the host's MPI, where its launcher starts the ranks.
    capabilities: of each block, by its name.
    releases: the row of each block, by its name.
    packages: OS packages of the final stage.
    requested: OS packages that each block asks for in either stage, by its name.
    mpi_packages: which packages bring an MPI; made for the few plans that need it.
    known_blocks: names of all blocks of the collections.
    bases: distributions and the version of their C library, by ``name version``.
    assembly: makes the whole assembly; for the few checks that need it.
    accepted: names of licences that are accepted.
    doubts: what is not known of the image's Python packages.
    untried: wheels of the project that no table has, by package.
    forward: the row of the block that brings a newer driver's libraries, where one does.
    facts: what was read of an image that hpcgen did not build; its blocks are those that were seen in it.
    """

    plan: Plan
    engine: Engine
    host: HostMpi | None
    capabilities: Mapping[str, Capabilities] = {}
    releases: Mapping[str, Release] = {}
    packages: Sequence[str] = ()
    requested: Mapping[str, Collection[str]] = {}
    mpi_packages: Callable[[], MpiPackageTable] = MpiPackageTable
    known_blocks: Callable[[], Collection[str]] = tuple
    bases: Callable[[], Mapping[str, str]] = dict
    assembly: Callable[[], Assembly] | None = None
    accepted: Collection[str] = ()
    doubts: Sequence[Finding] = ()
    untried: Mapping[str, Untried] = {}
    forward: Release | None = None
    facts: ImageFacts | None = None

    @property
    def site(self) -> Site:
        """The profile that the plan was made for."""
        return self.plan.site

    @property
    def partition(self) -> Partition:
        """The kind of node that is planned for."""
        return self.plan.site.partitions[self.plan.partition]

    @property
    def mpi(self) -> PlannedBlock | None:
        """The image's MPI; None where no block provides one."""
        return self.plan.block("mpi")

    @property
    def mpi_capabilities(self) -> Capabilities:
        """The capabilities of the image's MPI."""
        block = self.mpi
        return self.capabilities.get(block.name, Capabilities()) if block is not None else Capabilities()

    @property
    def swapped(self) -> bool:
        """Whether the host's MPI takes the place of the image's, and does not only start its ranks."""
        host = self.host
        return host is not None and self.engine.swaps(host)

    @property
    def providers(self) -> set[str]:
        """Fabric providers that work in the image."""
        return {name for each in self.capabilities.values() for name in each.providers}


def gpus_asked(case: ContractCase) -> int:
    """How many GPUs of a node the job asks for."""
    gpu, asked = case.partition.gpu, case.plan.job.gpus_per_node
    return 0 if gpu is None else gpu.count if asked is None else asked


def holds(name: str, reason: str) -> Check:
    """The check of a promise that holds, with the reason."""
    return Check(name, "holds", reason)


def skipped(name: str, reason: str) -> Check:
    """The question does not arise here."""
    return Check(name, "skipped", reason)


def unknown(name: str, reason: str, path: str = "") -> Check:
    """The check of a promise that cannot be judged, because a fact is missing."""
    return Check(name, "unknown", reason, path=path)


def release_of(text: str, parts: int = 2) -> tuple[int, ...]:
    """The first numbers of a version, ``(2019, 6)`` of ``2019.6.166``; what is no number ends them."""
    numbers = []
    for part in text.split(".")[:parts]:
        digits = re.match(r"[0-9]+", part)
        if digits is None:
            break
        numbers.append(int(digits[0]))
    return tuple(numbers)
