"""Whether what was planned rests on a fact of its site, and whether its image does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from hpcgen.core.config.provenance import NO_FACTS
from hpcgen.core.errors import HpcgenError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.component import Component
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan

_JOBS_ONLY = (
    r"(operator|archived|closed|scheduler|layouts|environment|unset_environment"
    r"|system\.(kernel|modules|user_namespaces)"
    r"|partitions\.[^.]+\.(nodes|memory|queues|slots|directives|chunk|parallel_environment|environment"
    r"|cpu\.(?!target(\.|$))[^.]+|gpu\.(count|tiles|memory_gb|cpus|cdi))"
    r"|containers\.(image_directory|build_on|unprivileged_build|engines\.[^.]+\.(reason|decided|modules)))(\.|$)"
)
"""Facts that people, jobs and the start of an image rest on, and no step of its build."""


class Dependent(msgspec.Struct, frozen=True):
    """A stack, lock, kit or image, with the plan that it comes to, and the lock that pins it where one does.

    ``inside``: the packages that an image has by its own records, where these were read.
    """

    label: str
    plan: Plan
    gpu: bool
    lock: Lock | None = None
    inside: list[Component] | None = None


def dependent(label: str, plan: Plan, catalog: Catalog, lock: Lock | None = None) -> Dependent:
    """Something with a plan."""
    return Dependent(label, plan, _uses_gpu(plan, catalog), lock)


def depends_on(dependent: Dependent, path: str) -> bool:
    """Whether what was planned would be another, or fail, without the fact of its site at ``path``."""
    plan = dependent.plan
    top, *below = path.split(".")
    if top in NO_FACTS or top == "operator":
        return False
    if top == "file_systems" and below and below[0] in plan.site.file_systems:
        return plan.site.file_systems[below[0]].bind
    if top == "partitions" and below:
        if below[0] != plan.partition or "performance" in below[1:2]:
            return False
        if "fabric" in below[1:2]:
            return plan.stack.run.mpi
        return "gpu" not in below[1:2] or dependent.gpu
    if top in ("mpi", "fabric"):
        return plan.stack.run.mpi
    if path.startswith("containers.engines."):
        return below[1] == plan.engine
    if path == "system.glibc":
        return plan.stack.run.mpi or dependent.gpu
    return True


def needs_build(dependent: Dependent, path: str) -> bool:
    """Whether an image has to be built again once the fact of its site at ``path`` changes."""
    return depends_on(dependent, path) and re.match(_JOBS_ONLY, path) is None


def _uses_gpu(plan: Plan, catalog: Catalog) -> bool:
    """Whether a chosen release asks something of the node's GPU or its driver."""
    for block in plan.blocks:
        try:
            release = catalog.release(block, plan.site.system.architecture)
        except (HpcgenError, KeyError):
            continue
        if release.host or release.targets:
            return True
    return False
