"""Facts of a profile that have the right type and still cannot be true."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcgen.backends.hardware.amdgpu import driver_release
from hpcgen.backends.hardware.mpi_abi import STANDARD, STANDARD_SINCE, abi_of, whose
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Problem, Problems
from hpcgen.core.model.site import Gpu, HostMpi, Partition, Site
from hpcgen.core.support.cpu_lists import list_text, read_list
from hpcgen.core.support.units import counted

Place = list[str | int]


def wrong_facts(site: Site, document: Document) -> Problems:
    """Versions that are none, an MPI with another's binary interface, queues that take no job."""
    problems = Problems()
    for path, text in _versions(site):
        if text is not None and (wrong := _wrong_version(str(path[-1]), text)):
            problems.append(wrong.at(document.position(path)))
    if site.mpi is not None and (wrong := _wrong_abi(site.mpi)):
        problems.append(wrong.at(document.position(["mpi", "abi"])))
    for name, partition in site.partitions.items():
        problems += _wrong_queues(name, partition, document)
        memory, gpu = partition.memory, partition.gpu
        if memory.usable_gb is not None and memory.usable_gb > memory.total_gb:
            place = document.position(["partitions", name, "memory", "usable_gb"])
            problems.add(
                f"a job cannot use {memory.usable_gb:g} GB of {memory.total_gb:g} GB",
                place,
                remedy="correct one of the two; usable_gb is what the batch system gives to jobs",
            )
        if gpu is not None:
            problems += _wrong_cpus(gpu, ["partitions", name, "gpu", "cpus"], document)
        if gpu is not None and gpu.vendor != "nvidia" and gpu.capability is not None:
            place = document.position(["partitions", name, "gpu", "capability"], key=True)
            message = f"a GPU of {gpu.vendor} has no compute capability, which is NVIDIA's"
            problems.add(message, place, remedy="call AMD's instruction set `target`: gfx90a" * (gpu.vendor == "amd"))
        if gpu is not None and gpu.vendor == "amd" and (wrong := _wrong_amd_driver(gpu.driver or "")):
            problems.append(wrong.at(document.position(["partitions", name, "gpu", "driver"])))
    return problems


def _wrong_abi(mpi: HostMpi) -> Problem | None:
    """An interface that the MPI has not: another family's, or the standard's before it was there."""
    own, remedy = f"abi: {abi_of(mpi.flavour)}", "correct `abi`, or `flavour` if the host has another MPI"
    if mpi.abi != STANDARD:
        message = f"{mpi.flavour} does not have the binary interface of {mpi.abi}"
        return Problem(message, None, own, remedy) if mpi.abi != abi_of(mpi.flavour) else None
    since = STANDARD_SINCE.get(mpi.flavour, ())
    here = tuple(int(part) for part in re.findall(r"\d+", mpi.version))[: len(since)]
    if here >= since[: len(here)]:
        return None
    message = f"{mpi.flavour} {mpi.version} does not have the binary interface of {whose(STANDARD)}"
    first = f"{mpi.flavour} {'.'.join(map(str, since))} or newer"
    return Problem(message, None, f"{own}, or {first}", "correct `abi`, or `version` if the host has a newer MPI")


def _wrong_cpus(gpu: Gpu, place: Place, document: Document) -> Iterator[Problem]:
    """One list for each GPU; GPUs that share some CPUs share all of them."""
    if gpu.cpus and len(gpu.cpus) != gpu.count:
        message = f"`cpus` has {counted(len(gpu.cpus), 'list')} for {counted(gpu.count, 'GPU')}"
        remedy = "write one list for each GPU, in the order of their numbers, or omit `cpus`"
        yield Problem(message, document.position(place), counted(gpu.count, "list"), remedy)
    sets = [frozenset(read_list(text)) for text in gpu.cpus]
    for number, cpus in enumerate(sets):
        if not cpus:
            message = f"{gpu.cpus[number]!r} names no CPU"
            yield Problem(message, document.position([*place, number]), remedy="write the smaller number first")
        for other in range(number):
            if cpus != sets[other] and (common := cpus & sets[other]):
                message = f"GPUs {other} and {number} share the CPUs {list_text(common)} and no others"
                remedy = "give each CPU to one GPU, or the same list to both"
                yield Problem(message, document.position([*place, number]), remedy=remedy)


def _versions(site: Site) -> Iterator[tuple[Place, str | None]]:
    """Each fact that is compared as a version, with its path."""
    yield ["system", "glibc"], site.system.glibc
    if site.mpi is not None:
        yield ["mpi", "version"], site.mpi.version
        yield ["mpi", "glibc"], site.mpi.glibc
    yield ["fabric", "libfabric"], site.fabric.libfabric
    for name, engine in site.containers.engines.items():
        yield ["containers", "engines", name, "version"], engine.version
    for name, partition in site.partitions.items():
        if partition.fabric is not None:
            yield ["partitions", name, "fabric", "libfabric"], partition.fabric.libfabric
        if partition.gpu is not None:
            yield ["partitions", name, "gpu", "capability"], partition.gpu.capability
            yield ["partitions", name, "gpu", "driver"], partition.gpu.driver


def _wrong_version(field: str, text: str) -> Problem | None:
    if field == "capability":
        if re.fullmatch(r"\d+\.\d", text):
            return None
        remedy = "NVIDIA lists the capability of each GPU; nvidia-smi --query-gpu=compute_cap prints it"
        return Problem(f"{text!r} is not a compute capability", None, "two numbers such as 8.0", remedy)
    if re.fullmatch(r"\d+(\.\d+)*([-+_~][0-9A-Za-z][-+_.~0-9A-Za-z]*|\.?(a|b|rc|dev|post)\d+)?", text):
        return None
    number = re.fullmatch(r"v(\d[0-9.]*)", text)
    remedy = f"write {number[1]}" if number else "write the release that is installed"
    if field == "version":
        remedy += ", or omit `version` of an engine if it is not known" if not number else ""
    return Problem(f"{text!r} is not a version", None, "numbers with dots between them, such as 4.1.6", remedy)


def _wrong_amd_driver(driver: str) -> Problem | None:
    """Modules are numbered 6.5 and higher where releases of the driver are not: after 6.4 came 30.10."""
    number = re.match(r"6\.(\d+)", driver)
    if number is None or int(number[1]) <= 4:
        return None
    release = driver_release(driver)
    remedy = f"write {release}, the release that has it" if release else "write the release of the package amdgpu-dkms"
    return Problem(f"{driver} is a version of AMD's kernel module", None, "a release of its driver such as 6.3", remedy)


def _wrong_queues(partition: str, nodes: Partition, document: Document) -> Iterator[Problem]:
    seen = set()
    for number, queue in enumerate(nodes.queues):
        place: Place = ["partitions", partition, "queues", number]
        if queue.max_nodes is not None and queue.max_nodes < queue.min_nodes:
            sizes = f"min_nodes is {queue.min_nodes} and max_nodes {queue.max_nodes}"
            message = f"no job fits the queue {queue.name}: {sizes}"
            yield Problem(message, document.position([*place, "max_nodes"]), remedy="exchange or correct the two")
        elif nodes.nodes is not None and queue.min_nodes > nodes.nodes:
            message = f"no job fits the queue {queue.name}: {partition} has fewer nodes"
            yield Problem(message, document.position([*place, "min_nodes"]), f"at most {nodes.nodes}")
        if (queue.name, *queue.directives) in seen:
            message = f"the queue {queue.name} is listed twice for {partition}"
            remedy = "remove one, or say with `directives` how the two differ"
            yield Problem(message, document.position([*place, "name"]), remedy=remedy)
        seen.add((queue.name, *queue.directives))
