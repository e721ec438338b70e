"""What a request wants of its job's header, in the words of its batch system, and what of it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hpcgen.backends.schedulers.base import Scheduler
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.site import Site
from hpcgen.plugins.tuning.requests.described_site import storage_words
from hpcgen.plugins.tuning.requests.records import JobWishes


def wished_options(batch: Scheduler, wishes: JobWishes) -> tuple[list[str], list[str]]:
    """Options, and the names of wishes that there are none for."""
    options, lost = [], []
    for name, value in _said(wishes):
        option = batch.wish("whole_environment" if (name, value) == ("environment", "") else name, value)
        if option:
            options.append(option)
        elif not (name == "nodes" and batch.nodes_in_request):
            lost.append(name)
    return options, lost


def _said(wishes: JobWishes) -> Iterator[tuple[str, str]]:
    """What is wished for, with its value; empty of what is simply wished for."""
    for name in ("after", "array", "begin", "exclusive", "qos", "nodes", "environment"):
        value = getattr(wishes, name)
        if value:
            yield name, ",".join(value) if isinstance(value, list) else "" if value is True else str(value)


def with_storage(site: Site, wishes: JobWishes) -> tuple[Site, list[Finding]]:
    """The site whose file systems of a class are seen in the job's containers."""
    if wishes.storage is None:
        return site, []
    found = {name: each for name, each in site.file_systems.items() if each.use == storage_words(wishes.storage)}
    if not found:
        message = f"job.storage: {site.name} has no known file system of class {wishes.storage}"
        remedy = "name a folder in `run.arguments`, or describe the system's `storage` in `infrastructure`"
        return site, [Finding(name="job", severity="warning", message=message, remedy=remedy)]
    places = ", ".join(str(each.path) for each in found.values())
    seen = {name: replace(each, bind=True) for name, each in found.items()}
    message = f"of the storage class {wishes.storage} is {places}, which the job sees in its own place"
    return replace(site, file_systems={**site.file_systems, **seen}), [
        Finding(name="job", severity="note", message=message)
    ]
