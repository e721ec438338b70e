"""What else a preflight looks for on a node: what may differ from the other nodes, and what ranks need to meet."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from hpcgen.backends.hardware.fabrics import drivers
from hpcgen.backends.launchers import launcher_of
from hpcgen.backends.schedulers import scheduler_for
from hpcgen.blocks.rank_test import rank_words
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.quoting import line, quoted, sh
from hpcgen.core.support.templates import Template
from hpcgen.launch.caches import home_limit
from hpcgen.launch.start import Start

NODE_LIMIT_S = 60
"""Seconds for one process on each node to start and look, and for one rank on each."""

SHARED_KB = 1024
"""What a rank takes of /dev/shm at the least, where several of a node talk to each other.

Two ranks of Intel MPI 2021.17 were seen to start in 2 MB and to die in 1 MB.
"""

SHARED_BY_GPUS_GB = 1
"""As in examples of NVIDIA's images (``--shm-size=1g``); how much of it NCCL uses was not measured."""

LOCKED_KB = 512 * 1024
"""The limit of locked memory below which UCX leaves RDMA out, and goes over TCP. Source: openucx/ucx pull requests
7930 and 8085."""

PROVIDER_VARIABLES = ("FI_PROVIDER", "I_MPI_OFI_PROVIDER")
"""By these a user chooses the provider of libfabric for every MPI, or for Intel's."""

fill = Template(Path(__file__).with_name("templates") / "preflight.sh").fill


def image(plan: Plan, how: Start, named: bool) -> str:
    """A node may have a file system, or a disk, with another image under the name."""
    if plan.job.nodes == 1 or named or not how.engine.image_is_file:
        return ""
    return fill("image", todo=sh("copy the image there again, or put it on a file system that every node sees"))


def starts(plan: Plan, how: Start) -> str:
    """Whether the engine's program starts, where it is one of the node's."""
    if plan.job.nodes == 1 or how.engine.launcher or not how.engine.tells_version:
        return ""
    todo = sh("ask for it to be installed there as on the other nodes, or use other nodes")
    return fill("starts", engine=quoted(how.engine.command_name()), todo=todo)


def names(plan: Plan, how: Start) -> str:
    """Whether a node knows an address of the one that calls it."""
    launcher = launcher_of(how.mpi, plan.site.scheduler) if how.mpi is not None and how.outer else None
    if plan.job.nodes == 1 or launcher is None or not launcher.called_back_by_name:
        return ""
    called = f"the processes of {how.outer[0]} call back by that name"
    return fill("names", todo=sh(f"have /etc/hosts or the name service of this node know it: {called}"))


def variables(plan: Plan, how: Start) -> str:
    """What the caller's environment says of the fabric, where nothing of the plan says otherwise."""
    provider, own = plan.fabric.provider, how.variables
    names = [name for name in PROVIDER_VARIABLES if name not in {*own.exported, *own.inside, *own.unset}]
    if provider is None or not has_rank_test(plan, how) or is_open_mpi(plan) or not names:
        return ""
    path = plan.site.fabric_path(plan.partition, "provider")
    return fill(
        "variables",
        names=line(names),
        same=sh(f" {' '.join(drivers(provider))} "),
        weight=weight(plan.site, path),
        expected=sh(f"{provider} for {plan.fabric.kind}"),
        todo=sh(f"unset it, or correct {path} of the profile of {plan.site.name}"),
    )


def between_gpus(plan: Plan) -> list[str]:
    """The libraries of the image by which several GPUs of a node send each other data."""
    several = (plan.job.gpus_per_node or 0) > 1
    return sorted({each.gpu_collectives for each in plan.in_image} - {""}) if several else []


def shared_memory(plan: Plan, how: Start) -> str:
    """Ranks of a node start by it, and libraries of collectives fall back to it between GPUs."""
    todo = sh("remove what ended jobs left in it, or ask for it to be mounted with its usual size, half of the memory")
    ranks, parts = plan.job.ranks_per_node, []
    if ranks > 1 and has_rank_test(plan, how):
        parts.append(("FAILED", ranks * SHARED_KB, f"{ranks} ranks"))
    if libraries := between_gpus(plan):
        parts.append(("warning", SHARED_BY_GPUS_GB * 2**20, " and ".join(libraries)))
    return "".join(
        fill("shared_memory", weight=weight, least=str(least), expected=sh(f"{least} kB for {who}"), todo=todo)
        for weight, least, who in parts
    )


def locked_memory(plan: Plan, how: Start) -> str:
    """InfiniBand's cards read and write memory that is locked in its place."""
    if plan.job.nodes == 1 or not plan.stack.run.mpi or plan.fabric.kind != "infiniband":
        return ""
    todo = "ulimit -l unlimited where you submit; in Slurm the site sets PropagateResourceLimitsExcept=MEMLOCK"
    expected = f"{LOCKED_KB} kB or unlimited, or RDMA is left out"
    return fill("locked_memory", least=str(LOCKED_KB), expected=sh(expected), todo=sh(todo))


def caches(plan: Plan, how: Start) -> str:
    """Whether one of the caches would fill the home directory, on the first node."""
    limit = home_limit(plan)
    if how.caches is None or not limit:
        return ""
    found = [f"{each.variable}={each.home}" for each in how.caches.of("download")]
    found += [f"{each.variable}=" for each in how.caches.of("compiled")]
    todo = "set it, or HPCGEN_CACHE for all downloads, to a folder on a larger file system, and move its contents"
    return fill(
        "home",
        caches=line(found),
        at_home=fill("at_home") if how.engine.shows_home else "",
        expected=sh(f"a folder outside the home directory, which may hold {limit}"),
        todo=sh(todo),
    )


def library_sum(library: str) -> str:
    """That its nodes differ is no failure by itself: each may have the one that was compiled for it."""
    todo = "if ranks fail, have it installed there as on the other nodes"
    return f'preflight_sum "$word"/{sh(library)} "$word"/{sh(library)} warning {sh(todo)}'


def alone(plan: Plan, how: Start) -> str:
    """The function that starts one rank on each node, where ranks of all do not tell which node keeps them."""
    own = scheduler_for(plan.site.scheduler).on_each_node(plan.job.nodes)
    if plan.job.nodes == 1 or not own or how.engine.launcher:
        return ""
    words = [how.engine.before_words(), *how.engine.words(replace(how.call, join=0))]
    return fill(
        "alone",
        words=[line(group) for group in words if group],
        limit_s=str(NODE_LIMIT_S),
        own=line(own),
        command=line(["/usr/bin/env", "HPCGEN_RANKS=1", *rank_words(plan)]),
        todo=sh("compare this node with the others: the image, the MPI libraries, /dev/shm"),
    )


def has_rank_test(plan: Plan, how: Start) -> bool:
    """Whether ranks are started: not by the image's own launcher, since nothing of the host takes part in that."""
    return bool(how.outer) and not how.inner and plan.stack.run.mpi and bool(rank_words(plan))


def is_open_mpi(plan: Plan) -> bool:
    host = plan.site.mpi
    return plan.mpi.family == "openmpi" or (host is not None and host.flavour == "openmpi")


def weight(site: Site, path: str) -> str:
    """``FAILED``, or ``warning`` for a fact that the profile calls unverified."""
    source = site.source_of(path)
    return "warning" if source is not None and source.verified == "no" else "FAILED"
