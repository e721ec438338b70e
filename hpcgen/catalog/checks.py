"""What the types of a profile or recipe cannot say: names that must exist, ranges that must parse."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hpcgen.backends.engines import ENGINES
from hpcgen.backends.schedulers import SCHEDULERS, launched_by, launchers
from hpcgen.catalog.fact_checks import wrong_facts
from hpcgen.catalog.passwords import passwords
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Problem, Problems, did_you_mean
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.site import MPI_LAUNCHERS, Site
from hpcgen.core.model.stack import Stack

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog


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
    problems += passwords(document)
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


def _batch_problems(site: Site, document: Document) -> list[Problem]:
    """The batch system is one that is known, and the ranks' launcher is its own or an MPI's."""
    kind, mpi = site.scheduler.kind, site.mpi
    if kind not in SCHEDULERS:
        return [_unknown(document, ["scheduler", "kind"], "batch system", kind, SCHEDULERS.names())]
    batch = SCHEDULERS.find(kind)
    lacking = [f"scheduler.{name}" for name in batch.needs if getattr(site.scheduler, name) is None]
    if lacking and not site.abstract:
        message = f"no job can be submitted to {batch.title} without {', '.join(lacking)}"
        return [Problem(message, where=document.position(["scheduler"], key=True), remedy="docs/site-profiles.md")]
    if mpi is None or mpi.launcher in MPI_LAUNCHERS or launched_by(mpi.launcher, site.scheduler) is not None:
        return []
    return [_unknown(document, ["mpi", "launcher"], "launcher", mpi.launcher, launchers())]


def _unknown(document: Document, path: list[Any], what: str, name: str, known: list[str]) -> Problem:
    return Problem(f"no {what} is called {name!r}", where=document.position(path), remedy=did_you_mean(name, known))


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
        if providers is not None and block.options:
            problems.add(
                f"{name} is a virtual and has no options of its own",
                where=document.position(["blocks", name, "options"], key=True),
                remedy=f"give the options to the block that provides it: {', '.join(providers)}",
            )
        if block.version:
            with problems.caught(partial(document.position, ["blocks", name, "version"])):
                version_range(block.version)
    for number, suited in enumerate(stack.suits):
        for field, names in (("framework", [suited.framework] if suited.framework else []), ("takes", suited.takes)):
            unknown = [each for each in names if not catalog.has_block(each)]
            at = ["suits", number, field]
            problems += [_unknown(document, at, "framework", each, catalog.names("block")) for each in unknown]
    problems += _run_problems(stack, document)
    problems += _copy_problems(stack, document, catalog)
    problems += passwords(document)
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
                message = f"{place} and {other} are the same place, or one lies in the other"
                problems.add(message, where, "a place of its own for each")
    return problems


def _run_problems(stack: Stack, document: Document) -> list[Problem]:
    """Something is started; steps are told apart by their names."""
    run = stack.run
    if not run.command and not run.steps:
        where = document.position(["run"])
        return [Problem("the stack starts nothing", where, "run.command or run.steps", "say what a job starts")]
    problems = []
    for number, step in enumerate(run.steps):
        if not step.command:
            where = document.position(["run", "steps", number])
            problems.append(Problem(f"the step {step.name} starts nothing", where, "a list of words as its command"))
        if step.name in [each.name for each in run.steps[:number]]:
            where = document.position(["run", "steps", number, "name"])
            problems.append(Problem(f"two steps are called {step.name}", where, "a name of its own for each"))
    return problems
