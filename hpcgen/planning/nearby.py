"""What else could be asked where a request fails that could be planned: options for GPUs, ``--add``, another job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations, islice, product

from msgspec.structs import replace

from hpcgen.blocks.options import option_fields
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError, PolicyError, Remedy, UnknownNameError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.quoting import sh
from hpcgen.launch.job.remedies import JobChange, changes, refusal
from hpcgen.planning.question import MisfitError, PlanRequest, UnusedSettingError
from hpcgen.planning.remedies import Trials, explained, option_values
from hpcgen.planning.resolver.resolve import NoPlanError

TOGETHER = 2
"""So many options of a block are changed at most."""


def on_gpus(
    error: MisfitError, asked: PlanRequest, catalog: Catalog, plan: Callable[[PlanRequest], Plan]
) -> PolicyError | None:
    """The error with what makes a block of the plan use the GPUs; None where nothing that was tried does."""
    trials = Trials(asked, plan)
    found = tuple(filter(None, (trials.first(_variants(catalog, name, asked)) for name in error.idle)))
    if not found:
        return None
    *others, last = error.problems
    text = ", or ".join([*(each.text for each in found), *filter(None, [last.remedy])])
    better = PolicyError([*others, replace(last, remedy=text)])
    better.remedies = found
    return better


def _variants(catalog: Catalog, block: str, asked: PlanRequest) -> Iterator[Remedy]:
    """Other values of a block's options, one changed before several; each has the newest release that fits."""
    fields = option_fields(catalog.block(block).Options)
    known = {f"{block}.{each.encode_name}": option_values(each.type) for each in fields}
    choices = [(name, [None] if asked.said(name) is not None else values) for name, values in known.items() if values]
    for number in range(1, TOGETHER + 1):
        for several in combinations(choices, number):
            for values in product(*(values for _, values in several)):
                yield _set_all(dict(zip((name for name, _ in several), values, strict=True)), asked)


def _set_all(settings: Mapping[str, str | None], asked: PlanRequest) -> Remedy:
    words = [
        f"--set {sh(f'{name}={value}')}" if value is not None else f"without --set {sh(f'{name}={asked.said(name)}')}"
        for name, value in settings.items()
    ]
    return Remedy(settings=dict(settings), text=" ".join(words))


OTHER_JOBS = 12
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
        other = _explained(failure, added, site, plan)
        added_to = [each for each in other.remedies if not set(each.without) & set(error.names)]
        drop = Trials(asked, plan).first([_without_settings(error.names, asked)]) if not added_to else None
        first, *more = other.problems
        if drop is not None:
            message = f"{last.message}; {words} does not help: {first.message}"
            found = UnknownNameError([*others, replace(last, message=message, remedy=drop.text), *more])
            found.remedies = (drop,)
            return found
        found = UnknownNameError([*others, last, replace(first, message=f"with {words}: {first.message}"), *more])
        found.remedies = tuple(replace(each, added=(*error.names, *each.added)) for each in added_to)
        return found
    found = UnknownNameError([*others, replace(last, remedy=f"put it into the image: {words}")])
    found.remedies = (remedy,)
    return found


def _explained(
    failure: HpcgenError, asked: PlanRequest, site: Site, plan: Callable[[PlanRequest], Plan]
) -> HpcgenError:
    """What stands against a request: no choice of versions is a bare fact until it is explained."""
    if not isinstance(failure, NoPlanError):
        return failure
    try:
        return explained(failure.question, asked, site, plan)
    except InputError as circle:
        return circle


def _without_settings(blocks: Collection[str], asked: PlanRequest) -> Remedy:
    """Everything that ``--set`` says of some blocks left out."""
    said = [each for each in asked.settings if each.partition("=")[0].partition(".")[0] in blocks]
    words = " ".join(f"--set {sh(each)}" for each in said)
    return Remedy(settings={each.partition("=")[0]: None for each in said}, text=f"without {words}")


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
    return refusal(error.problems, islice(near, OTHER_JOBS), works)
