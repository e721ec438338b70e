"""The site that a request is for, a profile or one made of what it describes; and what it wishes of the job there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from packaging.version import Version

from hpcgen.backends.hardware.mpi_abi import MPI_PMI, abi_of
from hpcgen.backends.schedulers import SCHEDULERS, scheduler_for
from hpcgen.backends.schedulers.base import Scheduler
from hpcgen.catalog.catalog import Catalog, is_file_name
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import UnknownNameError
from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.site import Partition, Site
from hpcgen.plugins.tuning.optimise.nearest import nearest_first
from hpcgen.plugins.tuning.requests.described_site import described_site, storage_words
from hpcgen.plugins.tuning.requests.mail import mail_directives
from hpcgen.plugins.tuning.requests.records import JobWishes, OptimiseRequest

_GENERIC = ("nvidia", "amd")
"""Vendors of GPUs of which there is a profile that stands for any cluster; ``-cpu`` stands for the others."""

_OLDEST = {"amd": "zen", "intel": "haswell"}
"""Of a vendor's CPUs for servers the oldest with AVX2, which the profiles that stand for any cluster count on."""

_HYDRA = ("hydra", "pmi")
"""What the launchers of MPICH's family offer to ranks.  Source: the user guide of MPICH's Hydra."""


def target_of(request: OptimiseRequest, catalog: Catalog, today: str) -> tuple[Site, list[Finding]]:
    """The site, and what the user should know of it. Its batch system is the one that the request names.

    ``today``: the date of the facts that the request itself states. UnknownNameError: there is no such profile, and the
    request says nothing that would do for one. InputError: what is described makes none.
    """
    if request.infrastructure is None:
        return _named(request, catalog)
    plain = described_site(request, today)
    default = plain.profile["partitions"][plain.profile["default_partition"]]
    vendor = (default.get("gpu") or {}).get("vendor")
    found = described_site(request, today, _generic_name(catalog, request.scheduler, vendor))
    document = InMemory(found.profile, f"infrastructure {found.profile['name']}")
    return catalog.site_from(catalog.with_parents(document, (found.profile["name"],))), found.findings


def _named(request: OptimiseRequest, catalog: Catalog) -> tuple[Site, list[Finding]]:
    if request.site is None:
        site, said = _generic(request, catalog)
        message = (
            f"the request does not say where the program runs: this is for {site.name}, which no machine need be like"
        )
        return site, [_warning("site", message, "--site NAME: hpcgen list sites"), *said]
    try:
        site = catalog.site(request.site)
    except UnknownNameError as error:
        if request.scheduler is None or is_file_name(request.site):
            raise
        site, said = _generic(request, catalog)
        problem = error.problems[0]
        message = f"{problem.message}: of {request.site} the request's own words count, and else what {site.title} says"
        remedy = f"`hpcgen site new {site.name} --detect` there writes its profile"
        return site, [_warning("site", message, "; ".join(filter(None, [problem.remedy, remedy]))), *said]
    own = site
    if request.scheduler not in (None, site.scheduler.kind):
        site = _with_scheduler(site, str(request.scheduler))
    if own.partitions == catalog.site(_generic_name(catalog, None, None)).partitions:
        # Nothing is known of its nodes either.
        site = replace(site, partitions=_asked_partitions(site, request))
    site, said = _with_mpi(site, request, catalog)
    if site.scheduler.kind == own.scheduler.kind:
        return site, said
    message = f"the profile of {site.name} has {own.scheduler.kind}, and the request names {request.scheduler}"
    message += ", which the job is for; what the profile says of the other's queues and options is left out"
    return site, [_warning("site", message, "name no batch system"), *said]


def _warning(name: str, message: str, remedy: str) -> Finding:
    return Finding(name=name, severity="warning", message=message, remedy=remedy)


def _generic_name(catalog: Catalog, scheduler: str | None, vendor: str | None) -> str:
    kind = vendor if vendor in _GENERIC else "cpu"
    own = f"{scheduler}-{kind}"
    return own if own in catalog.names("site") else f"slurm-{kind}"


def _with_scheduler(site: Site, kind: str) -> Site:
    """The site with another batch system, to which nothing is said that was for its own."""
    known: Any = kind
    own = scheduler_for(site.scheduler).launcher
    mpi = site.mpi
    if mpi is not None and mpi.launcher == own:
        mpi = replace(mpi, launcher=SCHEDULERS.find(kind).launcher or "mpirun")
    old = site.scheduler
    batch = BatchSystem(kind=known, modules=old.modules, account=old.account, default_time=old.default_time)
    partitions = {
        name: replace(each, directives=[], queues=[], chunk=[], parallel_environment=None)
        for name, each in site.partitions.items()
    }
    return replace(site, scheduler=batch, partitions=partitions, mpi=mpi)


def _generic(request: OptimiseRequest, catalog: Catalog) -> tuple[Site, list[Finding]]:
    """The profile that stands for any cluster with such a batch system and such GPUs, with what the request says.

    What it asks of a node is taken to be there.
    """
    vendor = request.hardware.accelerator or ("nvidia" if request.limits.gpus_per_node else None)
    base = catalog.site(_generic_name(catalog, request.scheduler, vendor))
    site = base if request.scheduler in (None, base.scheduler.kind) else _with_scheduler(base, str(request.scheduler))
    if request.hardware.architecture not in (None, site.system.architecture):
        site = replace(site, system=replace(site.system, architecture=request.hardware.architecture))
    nodes = _asked_partitions(site, request)
    site, said = _with_mpi(replace(site, default_partition=next(iter(nodes)), partitions=nodes), request, catalog)
    if request.site is not None:
        site = replace(site, name=request.site, title=f"{request.site}, as {base.name}")
    return site, said


def _asked_partitions(site: Site, request: OptimiseRequest) -> dict[str, Partition]:
    """The one kind of node of a system that is not known any closer, by the name that the request has for it."""
    main = site.default_partition
    node = _asked(site.partitions[main], request)
    if request.partition is None or request.partition == main:
        return {main: node}
    option = scheduler_for(site.scheduler).kind_of_node
    wanted = [f"{option}{request.partition}"] if option else []
    return {request.partition: replace(node, directives=[*node.directives, *wanted])}


def _asked(node: Partition, request: OptimiseRequest) -> Partition:
    """A node with the slots, cores, memory and GPUs that the request wants of one."""
    limits = request.limits
    ranks = limits.ranks_per_node or math.ceil((limits.ranks or 1) / (limits.nodes or 1))
    threads = ranks * (limits.threads or 1)
    cores = max(node.cpu.cores, ranks, math.ceil(threads / 2))
    per_core = max(node.cpu.threads_per_core, math.ceil(threads / cores))
    memory = max(node.memory.total_gb, limits.memory_gb or 0, ranks * (limits.memory_per_rank_gb or 0))
    gpu = node.gpu
    if gpu is not None and limits.gpus_per_node:
        gpu = replace(gpu, count=max(gpu.count, limits.gpus_per_node))
    return replace(
        node,
        cpu=replace(node.cpu, target=_target_of(request) or node.cpu.target, cores=cores, threads_per_core=per_core),
        memory=replace(node.memory, total_gb=memory),
        slots=limits.ranks_per_node or node.slots,
        gpu=gpu,
    )


def _target_of(request: OptimiseRequest) -> str:
    """The CPU that code is compiled for, where the request says something of it."""
    wanted = request.hardware
    return "aarch64" if wanted.architecture == "aarch64" else _OLDEST.get(wanted.cpu_vendor or "", "")


def _with_mpi(site: Site, request: OptimiseRequest, catalog: Catalog) -> tuple[Site, list[Finding]]:
    """The site with the MPI that the request names, where no other launcher starts ranks on several nodes there."""
    library, flavour = request.mpi.library, request.mpi.flavour
    batch = scheduler_for(site.scheduler)
    if site.mpi is not None or library is None or flavour is None or batch.launcher or not batch.takes_jobs:
        return site, []
    abi: Any = abi_of(flavour)
    known = sorted(catalog.releases(library), key=Version, reverse=True)
    version = nearest_first(request.mpi.version, known)[0] if request.mpi.version else known[0]
    pmi: Any = _HYDRA if abi == "mpich" else MPI_PMI[abi]
    mpi = HostMpi(flavour=flavour, version=version, abi=abi, launcher="mpirun", pmi=list(pmi))
    message = f"the ranks are started by the mpirun of the host, which is taken to be that of {library} {version}"
    remedy = "load its module in the shell that submits, or say in a profile which MPI the host has"
    return replace(site, mpi=mpi), [_warning("mpi", message, remedy)]


def with_wishes(site: Site, request: OptimiseRequest) -> tuple[Site, list[Finding]]:
    """The site with what the request wants of its job's header, and the wishes that it cannot have."""
    wishes, facts = request.job, site.scheduler
    batch = scheduler_for(facts)
    mail, unknown = mail_directives(batch, wishes)
    said = []
    if unknown:
        events = ", ".join(unknown)
        said.append(Finding(name="job", severity="note", message=f"{batch.title} sends no mail at {events}"))
    if request.limits.memory_gb is not None:
        message = "limits.memory_gb is not held against anything: limits.memory_per_rank_gb is"
        said.append(Finding(name="limits", severity="note", message=message))
    options, lost = wished_options(batch, wishes)
    for name in lost:
        message = f"job.{name} is not honoured: hpcgen knows no option of {batch.title} for it"
        said.append(Finding(name="job", severity="warning", message=message))
    header = replace(
        facts,
        output=wishes.output or facts.output,
        error=wishes.error or facts.error,
        directives=[*facts.directives, *mail, *options],
    )
    site = replace(site, scheduler=header)
    if wishes.nodes is not None and batch.nodes_in_request:
        nodes = {name: replace(each, chunk=[*each.chunk, wishes.nodes]) for name, each in site.partitions.items()}
        site = replace(site, partitions=nodes)
    site, more = with_storage(site, wishes)
    return site, [*said, *more]


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
