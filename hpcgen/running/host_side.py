"""Who decides what happens on the host when an image is started: its user's own profiles, not the image's record.

An image may come from a stranger, and what its record says of the host would run there as its user: variables such as
PATH or LD_PRELOAD, modules, the launcher and its directives, and folders that are shown inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.core.errors import InputError, Problem, UnknownNameError
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.site import Site, SiteEngine
from hpcgen.core.model.stack import Stack

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog

_NOT_THERE = ("title", "aliases", "operator", "links", "notes", "sources", "extends", "network", "image")
"""Fields of a profile that a start does not depend on: what is there for people, and what builds need."""


class HostSide(msgspec.Struct, frozen=True):
    """What an image is started by.

    Parameters
    ----------
    recorded: the plan in the image; with the user's profile of its site, where that says the same.
    site: another profile, if that is not so or another was asked for.
    stack_outside: whether variables of the recorded stack are set on the host too, not in the container alone.
    findings: what the user should know of it.
    """

    recorded: Plan
    site: Site | None
    stack_outside: bool
    findings: list[Finding] = []


def host_side(
    recorded: Plan, site: Site | None, catalog: Catalog, *, trust: bool, stack: Stack | None = None
) -> HostSide:
    """Whose facts an image is started by.

    Parameters
    ----------
    recorded: the plan in the image.
    site: the profile that its user named, if any.
    trust: its user says that the image's own record may decide.
    stack: the user's own stack, which decides in the place of the recorded one.

    Raises
    ------
    InputError: the user has no profile of the recorded name, and names none.
    """
    if trust:
        message = f"the image's own record of {recorded.site.name} decides here: {asked_of_host(recorded)}"
        told = [] if site is not None else [Finding(name="trust", severity="warning", message=message)]
        return HostSide(recorded, site, stack_outside=True, findings=told)
    stack_outside = stack is not None or _same_stack(recorded.stack, catalog)
    if site is not None:
        return HostSide(recorded, site, stack_outside)
    name = recorded.site.name
    try:
        own = catalog.site(name)
    except UnknownNameError as failure:
        raise InputError(
            [
                Problem(
                    f"the image was built for {name}, and no profile of that site is here; the image's own record "
                    "must not decide what runs on this host",
                    expected="a profile of yours",
                    remedy="--site NAME|FILE, or --trust-image if the image is from somebody you trust",
                )
            ]
        ) from failure
    if _facts(own) == _facts(recorded.site) and _known_queue(own, recorded):
        return HostSide(msgspec.structs.replace(recorded, site=own), None, stack_outside)
    message = f"the image was built with another profile of {name}; yours is used"
    return HostSide(recorded, own, stack_outside, [Finding(name="profile", severity="note", message=message)])


def _facts(site: Site) -> dict[str, Any]:
    """What a start depends on, as plain data.

    Where images lie is for those who start one that they do not name, and the engine is chosen anew.
    """
    containers = msgspec.structs.replace(site.containers, image_directory=None, preferred="")
    data = msgspec.to_builtins(msgspec.structs.replace(site, containers=containers))
    return {name: value for name, value in data.items() if name not in _NOT_THERE}


def _known_queue(site: Site, recorded: Plan) -> bool:
    """Whether the recorded job goes where the profile sends such jobs."""
    partition = site.partitions.get(recorded.partition)
    queues = [queue.name for queue in partition.queues] if partition is not None else []
    return partition is not None and recorded.job.queue in (queues or [""])


def _same_stack(stack: Stack, catalog: Catalog) -> bool:
    """Whether the user has the same stack, or nothing of it reaches the host."""
    if not stack.run.environment:
        return True
    try:
        return catalog.stack(stack.name).run.environment == stack.run.environment
    except UnknownNameError:
        return False


def asked_of_host(recorded: Plan) -> str:
    """What a record has happen on the host, for people: all that a job script takes from a profile."""
    site, mpi, queue = recorded.site, recorded.site.mpi, recorded.job.queue
    partition = site.partitions[recorded.partition]
    engine = site.containers.engines.get(recorded.engine, SiteEngine())
    of_mpi = mpi if mpi is not None and recorded.stack.run.mpi else None
    environment = {**site.environment_of(recorded.partition), **recorded.stack.run.environment}
    environment |= of_mpi.environment if of_mpi is not None else {}
    file_systems = [each for each in site.file_systems.values() if each.bind]
    parts = {
        "environment": [f"{name}={value}" for name, value in environment.items()],
        "without": site.unset_environment,
        "modules": [*site.scheduler.modules, *(of_mpi.modules if of_mpi is not None else []), *engine.modules],
        "binds": [
            *([bind.source for bind in of_mpi.binds] if of_mpi is not None else []),
            *(each.path or f"${each.variable}" for each in file_systems if each.path or each.variable),
        ],
        "libraries": of_mpi.libraries if of_mpi is not None else [],
        "devices": site.fabric_of(recorded.partition).devices,
        "launcher": [of_mpi.launcher] if of_mpi is not None else [],
        "directives": [
            *site.scheduler.directives,
            *partition.directives,
            *(word for each in partition.queues if each.name == queue for word in each.directives),
        ],
    }
    said = "; ".join(f"{name} {' '.join(values)}" for name, values in parts.items() if values)
    return said or "nothing"
