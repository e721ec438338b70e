"""The site that a request is for: a profile, or one made of the system that the request describes."""

from __future__ import annotations

from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.site import Site
from hpcgen.plugins.tuning.requests.described_site import described_site
from hpcgen.plugins.tuning.requests.mail import mail_directives
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

_GENERIC = {"nvidia": "slurm-nvidia", "amd": "slurm-amd", None: "slurm-cpu"}
"""By the vendor of a system's GPUs, the profile that says what a description leaves out."""


def target_of(request: OptimiseRequest, catalog: Catalog, today: str) -> tuple[Site, list[Finding]]:
    """The site, and what the user should know of it.

    Parameters
    ----------
    today: the date of the facts that the request itself states.

    Raises
    ------
    UnknownNameError: there is no such profile. InputError: what is described makes none.
    """
    if request.site is not None:
        return catalog.site(request.site), []
    if request.infrastructure is None:
        return _generic(request, catalog)
    plain = described_site(request, today)
    default = plain.profile["partitions"][plain.profile["default_partition"]]
    vendor = (default.get("gpu") or {}).get("vendor")
    found = described_site(request, today, _GENERIC.get(vendor, "slurm-cpu"))
    document = InMemory(found.profile, f"infrastructure {found.profile['name']}")
    return catalog.site_from(catalog.with_parents(document, (found.profile["name"],))), found.findings


def _generic(request: OptimiseRequest, catalog: Catalog) -> tuple[Site, list[Finding]]:
    """The profile that stands for any cluster with such GPUs, which is no promise for any one of them."""
    accelerator = request.hardware.accelerator
    site = catalog.site(_GENERIC.get(None if accelerator == "none" else accelerator, "slurm-cpu"))
    message = f"the request does not say where the program runs: this is for {site.name}, which no machine need be like"
    found = [Finding(name="site", severity="warning", message=message, remedy="--site NAME: hpcgen list sites")]
    if request.scheduler not in (None, site.scheduler.kind):
        message = (
            f"{site.name} has {site.scheduler.kind} as its batch system, and the request wants {request.scheduler}"
        )
        found.append(Finding(name="site", severity="warning", message=message))
    return site, found


def with_wishes(site: Site, request: OptimiseRequest) -> tuple[Site, list[Finding]]:
    """The site with what the request wants of its job's header, and the wishes that it cannot have."""
    wishes, batch = request.job, site.scheduler
    options, unknown = mail_directives(batch.kind, wishes)
    said = []
    if unknown:
        events = ", ".join(unknown)
        said.append(Finding(name="job", severity="note", message=f"{batch.kind} sends no mail at {events}"))
    if request.limits.memory_gb is not None:
        message = "limits.memory_gb is not held against anything: limits.memory_per_rank_gb is"
        said.append(Finding(name="limits", severity="note", message=message))
    header = replace(
        batch,
        output=wishes.output or batch.output,
        error=wishes.error or batch.error,
        directives=[*batch.directives, *options],
    )
    return replace(site, scheduler=header), said
