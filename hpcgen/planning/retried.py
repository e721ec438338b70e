"""Suggest nearby requests when one fails; each is planned before it is suggested."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from hpcgen.core.errors import HpcgenError, PolicyError, Remedy, UnknownNameError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.launch.job.remedies import JobChange, changes, refusal
from hpcgen.planning.asked import MisfitError, PlanRequest, UnusedSettingError
from hpcgen.planning.remedies import explained
from hpcgen.planning.resolver.resolve import NoPlanError

TRIED = 12
"""So many other jobs are planned at most for one error."""


def with_added(
    error: UnusedSettingError, asked: PlanRequest, site: Site, plan: Callable[[PlanRequest], Plan]
) -> UnknownNameError:
    """``--set`` of blocks that the plan does not have: ``--add`` brings them, or what stands against that."""
    words = " ".join(f"--add {name}" for name in error.names)
    *others, last = error.problems
    remedy = Remedy(added=tuple(error.names), text=words)
    added = asked.after(remedy)
    try:
        plan(added)
    except HpcgenError as failure:
        # No choice of versions is a bare fact until it is explained.
        other = explained(failure.question, added, site, plan) if isinstance(failure, NoPlanError) else failure
        first, *more = other.problems
        found = UnknownNameError([*others, last, replace(first, message=f"with {words}: {first.message}"), *more])
        found.remedies = tuple(replace(each, added=(*error.names, *each.added)) for each in other.remedies)
        return found
    found = UnknownNameError([*others, replace(last, remedy=f"put it into the image: {words}")])
    found.remedies = (remedy,)
    return found


def with_other_job(
    error: MisfitError,
    asked: PlanRequest,
    site: Site,
    request: JobRequest,
    plan: Callable[[PlanRequest, JobRequest], Plan],
) -> PolicyError:
    """A job that does not fit the machine, with the nearest that does."""

    def works(change: JobChange) -> bool:
        try:
            plan(replace(asked, partition=change.partition), change.request)
        except HpcgenError:
            return False
        return True

    near = changes(site, asked.partition or site.default_partition, asked.stack, request)
    return refusal(error.problems, islice(near, TRIED), works)
