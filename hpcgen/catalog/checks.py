"""What the types of a profile or recipe cannot say: names that must exist, ranges that must parse."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hpcgen.backends.engines import ENGINES
from hpcgen.backends.launchers import knows_launcher, launcher_names
from hpcgen.backends.schedulers import SCHEDULERS
from hpcgen.catalog.secret_texts import secret_texts
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Problem, Problems, did_you_mean
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack, StackBlock

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
import re
from collections.abc import Iterator

from hpcgen.backends.hardware.amdgpu import driver_release
from hpcgen.backends.hardware.mpi_abi import STANDARD, STANDARD_SINCE, abi_of, whose
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.performance import DIMENSIONS, PRINTED_IN, TIMES, tolerance
from hpcgen.core.model.site import Partition
from hpcgen.core.support.cpu_lists import list_text, read_list
from hpcgen.core.support.units import counted


def check_site(site: Site, document: Document) -> None:
    """Names inside a profile refer to each other rightly; InputError with every mistake."""
    problems = Problems()
    partitions = list(site.partitions)
    if site.default_partition not in partitions:
        problems.append(_unknown(document, ["default_partition"], "partition", site.default_partition, partitions))
    for number, layout in enumerate(site.layouts):
        if layout.partition not in partitions:
            place = ["layouts", number, "partition"]
            problems.append(_unknown(document, place, "partition", layout.partition, partitions))
    problems += _batch_problems(site, document)
    problems += wrong_facts(site, document)
    problems += secret_texts(document)
    containers = site.containers
    for name in containers.engines:
        if name not in ENGINES:
            at = document.position(["containers", "engines", name], key=True)
            problems.add(f"no engine is called {name!r}", at, remedy=did_you_mean(name, ENGINES.names()))
    preferred = containers.engines.get(containers.preferred)
    if preferred is None:
        place = ["containers", "preferred"]
        problems.append(_unknown(document, place, "engine", containers.preferred, list(containers.engines)))
    elif not preferred.allowed:
        problems.add(
            f"{containers.preferred} is preferred but not allowed",
            where=document.position(["containers", "preferred"]),
            remedy="prefer an engine that the site allows",
        )
    elif containers.preferred in ENGINES and not ENGINES.find(containers.preferred).runs:
        problems.add(
            f"{containers.preferred} is preferred, but only builds images and cannot start them",
            where=document.position(["containers", "preferred"]),
            remedy="prefer the engine that runs jobs",
        )
    for path in site.sources:
        if not document.has(path.split(".")):
            problems.add(
                f"sources names {path!r}, which is not a fact of this profile",
                where=document.position(["sources", path], key=True),
                expected="the path of a fact, such as mpi.version",
            )
    problems.raise_as(InputError)


UNDATED = (
    "add `as_of`, the date of the commit, page or file; where it has none, the day of reading and `dated_by: reading`"
)


def undated(document: Document) -> dict[str, Problem]:
    """The sources of a profile, or of its parents, that are verified and have no date, each with what is wrong."""
    return {
        path: Problem(f"{path} is verified, but of no date", document.position(["sources", path]), "as_of", UNDATED)
        for path, source in (document.data.get("sources") or {}).items()
        if source["verified"] == "yes" and source.get("as_of") is None
    }


def _batch_problems(site: Site, document: Document) -> list[Problem]:
    """The batch system is one that is known, and the ranks' launcher is its own or an MPI's."""
    kind, mpi = site.scheduler.kind, site.mpi
    if kind not in SCHEDULERS:
        return [_unknown(document, ["scheduler", "kind"], "batch system", kind, SCHEDULERS.names())]
    batch = SCHEDULERS.find(kind)
    lacking = [f"scheduler.{name}" for name in batch.needs if getattr(site.scheduler, name) is None]
    if lacking and not site.abstract:
        message = f"no job can be submitted to {batch.title} without {', '.join(lacking)}"
        where = document.position(["scheduler"], key=True)
        return [Problem(message, where=where, remedy="docs/site-profile-fields.md")]
    if site.scheduler.resources and not batch.resource_form:
        where = document.position(["scheduler", "resources"], key=True)
        message = f"{batch.title} has no option for resources by name that hpcgen knows"
        return [Problem(message, where=where, remedy="write the whole option into scheduler.directives")]
    asked = site.scheduler.memory_request
    if asked and batch.memory_forms and asked not in ("none", *batch.memory_forms):
        path = ["scheduler", "memory_request"]
        return [_unknown(document, path, f"way to ask {batch.title} for memory", asked, [*batch.memory_forms, "none"])]
    if mpi is None or knows_launcher(mpi.launcher, site.scheduler):
        return []
    return [_unknown(document, ["mpi", "launcher"], "launcher", mpi.launcher, launcher_names())]


def _unknown(document: Document, path: list[Any], what: str, name: str, known: list[str]) -> Problem:
    return Problem(f"no {what} is called {name!r}", where=document.position(path), remedy=did_you_mean(name, known))


def _virtual_options(
    name: str, block: StackBlock, providers: list[str], document: Document, catalog: Catalog
) -> list[Problem]:
    """Options of a virtual that no block has which stands for it; a block takes those that it has."""
    from hpcgen.blocks.options import option_fields

    if not providers or not block.options:
        return []
    known = {field.encode_name for each in providers for field in option_fields(catalog.block(each).Options)}
    return [
        Problem(
            f"no block that provides {name} has an option {option!r}",
            where=document.position(["blocks", name, "options", option], key=True),
            remedy=did_you_mean(option, sorted(known)) or f"give it to one of them: {', '.join(providers)}",
        )
        for option in block.options
        if option not in known
    ]


def check_stack(stack: Stack, document: Document, catalog: Catalog) -> None:
    """Blocks exist, ranges are ranges, providers provide; InputError with every mistake."""
    from hpcgen.blocks.requirements import version_range

    problems = Problems()
    for name, block in stack.blocks.items():
        providers = catalog.virtuals.get(name)
        if providers is None and not catalog.has_block(name):
            known = [*catalog.names("block"), *catalog.virtuals]
            problems.append(_unknown(document, ["blocks", name], "block", name, known))
        if block.provider is not None and block.provider not in (providers or []):
            place = ["blocks", name, "provider"]
            problems.append(_unknown(document, place, f"provider of {name}", block.provider, providers or []))
        problems += _virtual_options(name, block, providers or [], document, catalog)
        if block.version:
            with problems.caught(partial(document.position, ["blocks", name, "version"])):
                version_range(block.version)
    for number, suited in enumerate(stack.suits):
        for field, names in (("framework", [suited.framework] if suited.framework else []), ("takes", suited.takes)):
            unknown = [each for each in names if not catalog.has_block(each)]
            at = ["suits", number, field]
            problems += [_unknown(document, at, "framework", each, catalog.names("block")) for each in unknown]
    problems += _run_problems(stack, document)
    if stack.run.models:
        from hpcgen.catalog.models import model_problems

        problems += model_problems(stack, document)
    problems += _copy_problems(stack, document, catalog)
    problems += secret_texts(document)
    problems.raise_as(InputError)


def _copy_problems(stack: Stack, document: Document, catalog: Catalog) -> list[Problem]:
    """The stack's own code goes where no block is installed, and nothing over something else."""
    problems = Problems()
    places = stack.code_places
    for index, (field, number, place) in enumerate(places):
        where = document.position([field, number, "to"])
        name = place.split("/")[2] if place.startswith("/opt/") else ""
        if name and catalog.has_block(name):
            problems.add(f"/opt/{name} is where the block {name} is installed", where, remedy="choose another `to`")
        for _, _, other in places[:index]:
            if overlap(place, other):
                message = f"{place} and {other} are the same place, or one is inside the other"
                problems.add(message, where, "a different place for each")
    return problems


def _run_problems(stack: Stack, document: Document) -> list[Problem]:
    """Each step starts something, and steps are told apart by their names."""
    run = stack.run
    problems = []
    for number, step in enumerate(run.steps):
        if not step.command:
            where = document.position(["run", "steps", number])
            problems.append(Problem(f"the step {step.name} starts nothing", where, "a list of words as its command"))
        if step.name in [each.name for each in run.steps[:number]]:
            where = document.position(["run", "steps", number, "name"])
            problems.append(Problem(f"two steps are called {step.name}", where, "a different name for each"))
    return problems


# Facts of a profile that have the right type and still cannot be true.

Place = list[str | int]


def wrong_facts(site: Site, document: Document) -> Problems:
    """Versions that are none, an MPI with another's binary interface, queues that take no job."""
    problems = Problems()
    for path, text in _versions(site):
        if text is not None and (wrong := _wrong_version(str(path[-1]), text)):
            problems.append(wrong.at(document.position(path)))
    if site.mpi is not None and (wrong := _wrong_abi(site.mpi)):
        problems.append(wrong.at(document.position(["mpi", "abi"])))
    if site.mpi is not None and site.mpi.bind_modules and site.mpi.root is None:
        problems.add(
            "where the MPI of mpi.bind_modules is in the container is unknown, so ranks cannot be checked for it",
            document.position(["mpi", "bind_modules"], key=True),
            remedy="set mpi.root to its folder, such as /opt/cray",
        )
    if site.system.module_paths and site.system.modules == "valet":
        problems.add(
            "VALET looks through no folders of modules",
            document.position(["system", "module_paths"], key=True),
            remedy="omit module_paths, or correct `modules` if the site has `module load`",
        )
    for name, partition in site.partitions.items():
        problems += _wrong_queues(name, partition, document)
        problems += _wrong_performance(name, partition, document)
        memory, gpu = partition.memory, partition.gpu
        if memory.usable_gb is not None and memory.usable_gb > memory.total_gb:
            place = document.position(["partitions", name, "memory", "usable_gb"])
            problems.add(
                f"a job cannot use {memory.usable_gb:g} GB of {memory.total_gb:g} GB",
                place,
                remedy="correct one of the two; usable_gb is the memory that the batch system gives to jobs",
            )
        if gpu is not None:
            problems += _wrong_cpus(gpu, ["partitions", name, "gpu", "cpus"], document)
        if gpu is not None and gpu.vendor != "nvidia" and gpu.capability is not None:
            place = document.position(["partitions", name, "gpu", "capability"], key=True)
            message = f"a GPU of {gpu.vendor} has no compute capability, which is NVIDIA's"
            problems.add(message, place, remedy="call AMD's instruction set `target`: gfx90a" * (gpu.vendor == "amd"))
        if gpu is not None and gpu.vendor == "amd" and (wrong := wrong_amd_driver(gpu.driver or "")):
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


def wrong_amd_driver(driver: str) -> Problem | None:
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
        numbers = [each.max_nodes for each in queue.times]
        if numbers != sorted(set(numbers)):
            remedy = "write the limits by their number of nodes, the smallest first"
            yield Problem(
                f"`times` of {queue.name} are not in order", document.position([*place, "times"]), remedy=remedy
            )
        if (queue.name, *queue.directives) in seen:
            message = f"the queue {queue.name} is listed twice for {partition}"
            remedy = "remove one, or say with `directives` how the two differ"
            yield Problem(message, document.position([*place, "name"]), remedy=remedy)
        seen.add((queue.name, *queue.directives))


def _wrong_performance(name: str, nodes: Partition, document: Document) -> Iterator[Problem]:
    """Figures in a unit of something else, and rates of which nothing would be too low."""
    for measure, fact in nodes.performance.items():
        place = ["partitions", name, "performance", measure]
        unit = PRINTED_IN[measure]
        if fact.in_unit(unit) is None:
            units = " or ".join(each for each in DIMENSIONS if DIMENSIONS[each][0] == DIMENSIONS[unit][0])
            yield Problem(f"{measure} is not measured in {fact.unit}", document.position([*place, "unit"]), units)
        if measure not in TIMES and tolerance(measure, fact) >= 1:
            message = f"with this tolerance no {measure} would be too low"
            yield Problem(message, document.position([*place, "tolerance"]), "a share of the value, such as 0.1")
