"""What libraries of collectives between GPUs have in common: by which network they reach GPUs of other nodes."""

from __future__ import annotations

from hpcgen.backends.hardware.fabrics import NCCL_VERBS
from hpcgen.blocks.context import Context
from hpcgen.blocks.steps import Packages

VERBS = {
    "apt": ["ibverbs-providers", "libibverbs1"],
    "dnf": ["libibverbs"],
    "zypper": ["libibverbs", "libibverbs1"],
}
"""What NCCL and RCCL open as they start, by its name, to send over InfiniBand; without it they take TCP sockets."""


def by_verbs(ctx: Context) -> bool:
    """Whether the GPUs of several nodes are joined by InfiniBand."""
    return ctx.facts.partition.gpu is not None and ctx.facts.gpu_fabric == "infiniband"


def with_verbs(ctx: Context, packages: Packages) -> Packages:
    """Packages of a block that brings such a library, with what that drives InfiniBand by where the GPUs have it."""
    if not by_verbs(ctx):
        return packages
    run = {manager: [*packages.run.get(manager, []), *names] for manager, names in VERBS.items()}
    return Packages(build=packages.build, run={**packages.run, **run})


def gpu_networks(ctx: Context) -> tuple[str, ...]:
    """What :func:`with_verbs` makes work, as ``Capabilities.gpu_networks`` has it."""
    return (NCCL_VERBS,) if by_verbs(ctx) else ()


def gencode(ctx: Context) -> list[str]:
    """The word of NVIDIA's Makefiles that compiles for the partition's GPU alone; none where that is not known."""
    gpu = ctx.facts.partition.gpu
    if gpu is None or gpu.capability is None:
        return []
    digits = gpu.capability.replace(".", "")
    return [f"NVCC_GENCODE=-gencode=arch=compute_{digits},code=sm_{digits}"]
