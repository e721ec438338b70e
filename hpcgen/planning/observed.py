"""An image that hpcgen did not build, as plans and checks know images: by blocks, of which each was seen in it.

What was read is a stranger's word: it decides what is asked of the host (its MPI, its GPUs), and nothing that happens
there. What was not seen is not claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from hpcgen.backends.hardware.fabrics import NCCL_LIBFABRIC, NCCL_VERBS, ONECCL
from hpcgen.backends.hardware.mpi_abi import HOST_SETTINGS, MPI_PMI
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.image_facts import KMP_RUNTIMES, ImageFacts, ImageFramework, ImageMpi, ImageSoftware
from hpcgen.core.model.plan import Plan, PlannedBlock, PlannedMpi
from hpcgen.core.model.release import PLATFORMS, Release
from hpcgen.core.support.wheel_tags import as_numbers
from hpcgen.planning.contract.case import ContractCase, release_of
from hpcgen.planning.contract.verdict import case_of_plan

UNKNOWN = "of unknown version"
VENDORS = {"cuda": "nvidia", "rocm": "amd", "xpu": "intel"}
"""Whose GPUs a framework computes on, by its variant."""

LIBIBVERBS = "libibverbs1"
_COLLECTIVES = {"nccl": "NCCL", "rccl": "RCCL", "oneccl": ONECCL}
_NUMBER = re.compile(r"\d+(\.\d+)*")


class SeenBlocks(msgspec.Struct):
    """The parts of an image as blocks, with what each can do and what it asks of a node.

    ``packages``: those of the distribution that checks know by name.
    """

    blocks: list[PlannedBlock] = []
    capabilities: dict[str, Capabilities] = {}
    releases: dict[str, Release] = {}
    packages: list[str] = []

    def add(self, block: PlannedBlock, can: Capabilities | None = None, row: Release | None = None) -> None:
        """One part; of several of a name the first counts."""
        if block.name not in self.capabilities:
            self.blocks.append(block)
            self.capabilities[block.name] = can or Capabilities()
            self.releases[block.name] = row or Release()


def seen(facts: ImageFacts, catalog: Catalog, abi: str = "") -> SeenBlocks:
    """What was read of an image, in the form of blocks, the base first.

    ``catalog``: whose tables say which driver a release of CUDA asks for. ``abi``: of the host's MPI; of several in the
    image, one with this binary interface is taken.
    """
    found = SeenBlocks()
    _add_base(found, facts)
    _add_mpi(found, facts, abi)
    _add_gpu(found, facts, catalog)
    for each in facts.frameworks:
        _add_framework(found, each, catalog)
    return found


def observed_case(plan: Plan, facts: ImageFacts, found: SeenBlocks) -> ContractCase:
    """The case for the checks of such an image's plan."""
    gpu = plan.site.partitions[plan.partition].gpu
    releases = found.releases
    if gpu is not None and gpu.vendor != "nvidia":
        # What CUDA asks of a driver says nothing of another vendor's.
        releases = {name: msgspec.structs.replace(row, host={}) for name, row in releases.items()}
    return msgspec.structs.replace(
        case_of_plan(plan),
        capabilities=found.capabilities,
        releases=releases,
        packages=found.packages,
        facts=facts,
    )


def chosen_mpi(facts: ImageFacts, abi: str = "") -> ImageMpi | None:
    """The image's MPI: that with the host's binary interface, else the first by its path."""
    return min(facts.mpi, key=lambda each: (each.abi != abi, each.file), default=None)


def _version(text: str) -> str:
    """The numbers of a version as somebody writes it."""
    match = _NUMBER.search(text)
    return match[0] if match is not None else ""


def _of(each: ImageSoftware) -> str:
    return _version(each.version.value) if each.version is not None else ""


def _add_base(found: SeenBlocks, facts: ImageFacts) -> None:
    system = facts.system
    name = system.distribution.value if system.distribution is not None else "the image"
    values: dict[str, str | list[str] | dict[str, str]] = {}
    if system.c_library is not None and system.c_library.name == "musl":
        values["libc"] = "musl"
    elif system.c_library is not None and (version := _of(system.c_library)):
        values["glibc"] = version
    release = system.release.value if system.release is not None else UNKNOWN
    # Which of them a program loads is not known before it runs.
    kmp = any(each.name in KMP_RUNTIMES for each in facts.openmp)
    found.add(PlannedBlock(name=name, version=release, provides=["base"], kmp=kmp), row=Release(values=values))
    if any(each.name == "rdma-core" for each in facts.fabric.libraries):
        found.packages.append(LIBIBVERBS)


def _add_mpi(found: SeenBlocks, facts: ImageFacts, abi: str) -> None:
    mpi = chosen_mpi(facts, abi)
    if mpi is None:
        return
    settings = HOST_SETTINGS.get(mpi.name, ())
    planned = PlannedMpi(
        abi=mpi.abi, flavour=mpi.name, host_settings=list(settings), folder=mpi.file.rpartition("/")[0] or "/"
    )
    providers = {each.value for each in facts.fabric.providers}
    if any(each.name == "ucx" for each in facts.fabric.libraries):
        providers |= {"ucx"} if {each.value for each in facts.fabric.transports} & {"ib"} else set()
    can = Capabilities(
        mpi_abi=mpi.abi,
        mpi_flavour=mpi.name,
        mpi_library=mpi.soname,
        pmi=_pmi(mpi, planned.family),
        providers=tuple(sorted(providers)),
        host_settings=settings,
    )
    name = {"intel": "intel_mpi"}.get(mpi.name, mpi.name)
    found.add(PlannedBlock(name=name, version=_of(mpi) or UNKNOWN, provides=["mpi"], mpi=planned), can)


def _pmi(mpi: ImageMpi, family: str) -> tuple[str, ...]:
    """What its ranks understand: those that speak PMI-1 are served by Hydra, and by what Slurm calls pmi2."""
    told = {each.value for each in mpi.pmi}
    more = {"hydra", "pmi", "pmi2"} if family == "mpich" and ("pmi" in told or not told) else set()
    return tuple(sorted(told | more)) or MPI_PMI.get(family, ())


def _add_gpu(found: SeenBlocks, facts: ImageFacts, catalog: Catalog) -> None:
    for each in facts.gpu.libraries:
        if each.name == "cuda":
            _add_cuda(found, each.version.value if each.version is not None else "", catalog, each.file)
        elif each.name == "rocm":
            runtime = "amd" if _found_by_loader(each.file) else ""
            block = PlannedBlock(name="rocm", version=_of(each) or UNKNOWN, gpu_runtime=runtime)
            found.add(block, Capabilities(gpu_vendors=("amd",), gpu_runtime=runtime))
        elif each.name in _COLLECTIVES:
            library = _COLLECTIVES[each.name]
            networks = _networks(facts)
            block = PlannedBlock(
                name=each.name, version=_of(each) or UNKNOWN, gpu_collectives=library, gpu_networks=networks
            )
            found.add(block, Capabilities(gpu_collectives=library, gpu_networks=tuple(networks)))


def _networks(facts: ImageFacts) -> list[str]:
    verbs = any(each.name == "rdma-core" for each in facts.fabric.libraries)
    # The plugin for sockets and SHARP has the same name without it.
    plugin = any(each.name == "nccl-plugin" and "ofi" in each.file for each in facts.gpu.libraries)
    return [NCCL_VERBS] * verbs + [NCCL_LIBFABRIC] * plugin


def _add_cuda(found: SeenBlocks, version: str, catalog: Catalog, file: str = "") -> None:
    """CUDA's run time with the driver that the tables say its release asks for."""
    number = _version(version)
    drivers = _drivers(catalog, number) if number else ""
    runtime = "nvidia" if file and _found_by_loader(file) else ""
    host = {"driver": drivers} if drivers else {}
    block = PlannedBlock(name="cuda", version=number or UNKNOWN, host=host, gpu_runtime=runtime)
    row = Release(host={"driver": drivers} if drivers else {})
    found.add(block, Capabilities(gpu_vendors=("nvidia",), gpu_runtime=runtime), row)


def _found_by_loader(file: str) -> bool:
    """Whether a library lies where the loader looks by itself, and not in a folder of Python packages."""
    return "-packages/" not in file


def _drivers(catalog: Catalog, version: str) -> str:
    """The drivers for a release of CUDA: those of the same release, else of the nearest before it in its major."""
    rows: Mapping[str, Release] = catalog.releases("cuda")
    wanted = release_of(version)
    near = [name for name in rows if release_of(name, 1) == wanted[:1] and release_of(name) <= wanted]
    return rows[max(near, key=as_numbers)].host.get("driver", "") if near else ""


def _add_framework(found: SeenBlocks, each: ImageFramework, catalog: Catalog) -> None:
    vendor = VENDORS.get(each.variant or "")
    if each.variant == "cuda" and each.built_with is not None:
        _add_cuda(found, each.built_with.value, catalog)
    block = PlannedBlock(name=each.name, version=_of(each) or UNKNOWN)
    idle = GpuUnused("its build is for CPUs alone") if each.variant == "cpu" else None
    found.add(block, Capabilities(gpu_vendors=(vendor,) if vendor else (), gpu_unused=idle))


def compiled_for(facts: ImageFacts) -> str:
    """archspec's name of what its files say that they need, the highest level; its architecture where none says."""
    levels = sorted(each.value for each in facts.system.cpu)
    if levels:
        return levels[-1].replace("-", "_")
    architecture = facts.system.architecture
    return next((name for name, other in PLATFORMS.items() if architecture and architecture.value == other), "")


def labels(blocks: Iterable[PlannedBlock]) -> str:
    """The parts for people: name and version of each."""
    return ", ".join(each.label for each in blocks)
