"""The site's policy, the network of its build host, and licences; its nodes' C library, CPU and memory."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.backends.engines import engine_format
from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.backends.schedulers import Header, Scheduler, scheduler_for
from hpcgen.core.model.site import Partition
from hpcgen.core.support.units import some
from hpcgen.launch.job.layout import memory_problem
from hpcgen.launch.job.measured_layouts import memory_text
from hpcgen.planning.contract.case import Check, ContractCase, holds, release_of, skipped, unknown
from hpcgen.recipe.formats import engines_reading

OTHER_FORMAT = "leave out the --format or --engine that asks for it"
"""The remedy where no engine of the site reads the recipe."""
OTHER_KIND = "convert the image to a kind that engines of the site start: hpcgen convert"
"""The same where the kind of a finished image has chosen the engine."""


def policy(case: ContractCase) -> list[Check]:
    """The site is open and allows the engine."""
    name, site, engine = "policy", case.site, case.plan.engine
    closed, found = [], []
    if site.closed is not None:
        reason = f"{site.name} is closed ({site.closed}): no job can run there"
        remedy = "keep its profile as a reference, and plan for a site that is open: hpcgen list sites"
        closed.append(Check("site-closed", "doubtful", reason, remedy, "", "closed"))
    known = site.containers.engines.get(engine)
    if known is not None and known.allowed:
        return [*closed, holds(name, f"{site.name} allows {engine}")]
    allowed = sorted({engine_format(each) for each, its in site.containers.engines.items() if its.allowed})
    expected = f"the format {' or '.join(allowed)}"
    remedy = OTHER_FORMAT if engine_format(engine) == case.plan.format else OTHER_KIND
    if known is None:
        others = [each for each in site.containers.engines if each in engines_reading(case.plan.format)]
        reason = f"the profile of {site.name} lists no engine for the format {case.plan.format}"
        if others:
            reason = f"the profile of {site.name} lists {', '.join(others)} for {case.plan.format}, and not {engine}"
        found.append(Check(name, "broken", reason, remedy, expected, "containers.engines"))
    else:
        reason = f"{site.name} does not allow {_refused(case)}"
        path = f"containers.engines.{engine}"
        found.append(Check(name, "broken", reason, remedy, expected, path))
    return closed + found


def _refused(case: ContractCase) -> str:
    """Every engine for the format that the site knows, with its reasons."""
    engines = case.site.containers.engines
    reading = engines_reading(case.plan.format)
    refused = {name: its for name, its in engines.items() if name in reading}
    why = []
    for name, its in refused.items():
        date = f", {its.decided}" if its.decided is not None else ""
        why.append(f"{name}: {its.reason}{date}")
    return f"{' or '.join(refused)} ({'; '.join(why)})"


def network(case: ContractCase) -> Check:
    """The building host reaches every input, or a mirror has it."""
    name, site = "network", case.site
    if case.plan.supply == "bundle":
        return holds(name, "the build takes everything from a bundle")
    if (site.network.internet.build or site.network.proxy is not None) and (elsewhere := _base_elsewhere(case)):
        known = some(sorted(site.network.mirrors.images), 4)
        reason = f"{elsewhere} is asked of its registry: network.mirrors.images of the profile has {known} alone"
        remedy = "name its image there, or take a base that is there (--set BASE.version=RANGE); else have the registry"
        return Check(name, "doubtful", reason, f"{remedy} within reach", "", "network.mirrors.images")
    if site.network.internet.build:
        return holds(name, "the building host reaches the internet")
    if site.network.proxy is not None:
        return holds(name, "the building host reaches the internet by a proxy")
    missing = list(dict.fromkeys(filter(None, _beyond_reach(case))))
    if not missing:
        return holds(name, "mirrors have everything that the build needs")
    reason = f"the building host has no internet, and no mirror for {some(missing, 6)}"
    remedy = "hpcgen lock and hpcgen bundle create where there is a network, then render --bundle; or --mirror"
    return Check(name, "broken", reason, remedy, "a mirror in network.mirrors, or a bundle", "network.internet.build")


def _base_elsewhere(case: ContractCase) -> str:
    """The base image where the site names those of other distributions, and no registry that has all."""
    if case.assembly is None or not case.site.network.mirrors.images:
        return ""
    assembly = case.assembly()
    images = [stage.image for stage in (assembly.builder, assembly.final) if stage.image.in_registry]
    return next(filter(None, (image.unmirrored(case.site.network.mirrors) for image in images)), "")


def _beyond_reach(case: ContractCase) -> Iterator[str]:
    """Kinds of input that no mirror has; empty for what one has."""
    if case.assembly is None:
        return
    assembly, mirrors = case.assembly(), case.site.network.mirrors
    yield from (stage.image.unmirrored(mirrors) for stage in (assembly.builder, assembly.final))
    base = case.plan.blocks[0].name
    if any(assembly.packages.values()) and base not in mirrors.apt and base not in mirrors.dnf:
        yield f"packages of {base}"
    yield from (item.unmirrored(mirrors) for _, item in assembly.inputs)


def licences(case: ContractCase) -> list[Check]:
    """Every licence that the build accepts has been accepted by the user."""
    name = "licences"
    needed = {each.name: each for of_block in case.capabilities.values() for each in of_block.licences}
    if not needed:
        return [skipped(name, "no licence needs acceptance")]
    found = []
    for each in needed.values():
        if each.name not in case.accepted:
            reason = f"{each.title} is not accepted: {each.url}"
            remedy = f"lock and build require --accept-licence {each.name}"
            found.append(Check(name, "doubtful", reason, remedy))
    return found or [holds(name, f"accepted: {', '.join(needed)}")]


def c_library(case: ContractCase) -> Check:
    """The image's C library is not older than the one that the host's libraries inside need."""
    name, host = "C library", case.host
    if host is None or not (case.swapped or case.plan.fabric.kind in case.engine.brings_fabrics):
        return skipped(name, "no library of the host enters the image")
    base = case.plan.blocks[0]
    label = f"{base.name} {base.version}"
    values = case.releases[base.name].values if base.name in case.releases else {}
    if values.get("libc") == "musl":
        reason = f"{label} has musl, and libraries of the host's {host.flavour} are made for glibc: they are not loaded"
        return Check(name, "broken", reason, "use an image with glibc: Debian, Ubuntu, Rocky Linux …", "glibc")
    here = str(values.get("glibc", ""))
    if not here:
        return unknown(name, f"nothing says which one {label} has")
    wanted, path = (host.glibc, "mpi.glibc") if host.glibc is not None else (case.site.system.glibc, "system.glibc")
    if wanted is None:
        return unknown(name, f"the profile does not say which glibc the host's {host.flavour} requires", "system.glibc")
    if release_of(here) >= release_of(wanted):
        return holds(name, f"{label} has {here}, the host's libraries ask for {wanted} or less")
    # Intel builds its libraries for old systems, not for the host's own.
    sure = host.glibc is not None or host.flavour != "intel"
    asks = "ask for" if host.glibc is not None else "may ask for up to the host's own"
    newer = [name for name, version in case.bases().items() if release_of(version) >= release_of(wanted)]
    reason = f"{label} has {here}, and libraries of the host's {host.flavour} {asks} {wanted}: they are not loaded"
    remedy = f"use a newer base: {some(newer)}" if newer else "no known base is new enough"
    if host.glibc is None:
        remedy += "; or set mpi.glibc to the newest GLIBC version that objdump -T shows for the host's libraries"
    return Check(name, "broken" if sure else "doubtful", reason, remedy, f"{wanted} or newer", path)


def cpu(case: ContractCase) -> list[Check]:
    """Every kind of node that the job may get has the CPU features that the code was compiled for."""
    name, plan = "CPU", case.plan
    if case.facts is not None:
        from hpcgen.planning.contract.observed import cpu as levels

        return levels(case, case.facts)
    target, queue = case.partition.cpu.target, plan.job.queue
    others = _sharing(case)
    if not others:
        where = f"in the queue {queue} there are" if queue else "the job runs on"
        return [holds(name, f"{where} nodes of {plan.partition} only: {target}")]
    selected = _selected(case.partition, scheduler_for(case.site.scheduler))
    if selected:
        return [holds(name, f"{selected} keeps the job on nodes of {plan.partition}: {target}")]
    found = []
    for other in others:
        theirs = case.site.partitions[other].cpu.target
        missing = sorted(code_features(target) - code_features(theirs)) if theirs != target else []
        if missing:
            reason = (
                f"the queue {queue} also leads to {other} ({theirs}), which lacks {some(missing)} of {target}: "
                "programs end there with SIGILL"
            )
            remedy = f"build for the older one: --partition {other}, or use a queue of {plan.partition} only"
            path = f"partitions.{other}.cpu.target"
            found.append(Check(name, "broken", reason, remedy, f"all that {target} has", path))
    return found or [holds(name, f"all nodes of the queue {queue} have all features of {target}")]


def _selected(partition: Partition, scheduler: Scheduler) -> str:
    """The directive that asks for this kind of node; "" if there is none."""
    asking = tuple(f"{option}{sign}" for option in scheduler.selecting for sign in "= ")
    for line in partition.directives:
        if line in scheduler.selecting or line.startswith(asking):
            return line
    return ":".join(partition.chunk)


def _sharing(case: ContractCase) -> list[str]:
    """Other partitions of the profile that the job's queue leads to."""
    queue = case.plan.job.queue
    return [
        name
        for name, partition in case.site.partitions.items()
        if name != case.plan.partition and queue and any(each.name == queue for each in partition.queues)
    ]


def memory(case: ContractCase) -> Check:
    """The ranks of a node fit into what a job may use of it."""
    name, job = "memory", case.plan.job
    problem = memory_problem(case.plan.partition, case.partition, job)
    if problem is not None:
        path = f"partitions.{case.plan.partition}.memory"
        return Check(name, "broken", problem.message, problem.remedy, problem.expected, path)
    if job.memory_per_rank_gb is None:
        given = _memory_given(case)
        of_job = f"; a job gets {given[0]:g} GB of it by {given[1]}" if given is not None else ""
        return skipped(name, f"no memory per rank was requested; {memory_text(case.partition, job)}{of_job}")
    return _memory_refused(case) or holds(name, memory_text(case.partition, job))


def _memory_given(case: ContractCase) -> tuple[float, str] | None:
    facts = case.site.scheduler
    return scheduler_for(facts).memory_given(Header(case.plan.stack.name, case.plan.job, case.partition, facts))


def _memory_refused(case: ContractCase) -> Check | None:
    """That the batch system gives the job less than its ranks need; None where nothing says so."""
    job, partition, facts = case.plan.job, case.partition, case.site.scheduler
    needed, queue = job.memory_per_node_gb or 0, Header("", job, partition, facts).queue
    given = _memory_given(case)
    if given is not None and given[0] < needed:
        reason = f"the ranks of a node need {needed:g} GB, and the job gets {given[0]:g} GB by {given[1]}"
        remedy = "let the header ask for the job's memory: take the option out, or correct scheduler.memory_request"
        return Check("memory", "broken", reason, remedy, f"at least {needed:g} GB", "scheduler.memory_request")
    cpus = partition.cpu.cores * partition.cpu.threads_per_core
    there = {"node": 1, "cpu": cpus, "gpu": job.gpus_per_node or 0}
    limits = queue.max_memory.items() if queue is not None else ()
    most = min((size * there[unit] for unit, size in limits if there[unit]), default=needed)
    if queue is None or most >= needed:
        return None
    reason = f"the ranks of a node need {needed:g} GB, and {queue.name} gives a job at most {most:g} GB of a node"
    path = f"partitions.{case.plan.partition}.queues"
    return Check("memory", "broken", reason, "start fewer ranks on a node", f"at most {most:g} GB", path)
