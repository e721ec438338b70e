"""What processes of several nodes send each other while they compute together: by which library, over which network.

MPI's own way is the check ``fabric provider``.
"""

from __future__ import annotations

from hpcgen.backends.hardware.fabrics import FAST, NCCL_LIBFABRIC, USUAL
from hpcgen.launch.collectives import GpuNetwork, gpu_network
from hpcgen.planning.contract.case import Check, ContractCase, Outcome, holds, skipped, unknown
from hpcgen.planning.contract.fabric import shown

NAME = "collectives"

LIBIBVERBS = ("libibverbs1", "libibverbs-dev", "libibverbs", "rdma-core", "rdma-core-devel")
"""OS packages with what NCCL and RCCL find InfiniBand by, whichever block has them."""


def collectives(case: ContractCase) -> list[Check]:
    """Each library of collectives that is not MPI goes over the fabric, and not unseen over TCP sockets."""
    plan = case.plan
    if plan.job.nodes == 1:
        return [skipped(NAME, "the job has one node")]
    if plan.gpu_collectives:
        return [_between_gpus(case)]
    if plan.cpu_collectives:
        return [_by_sockets(case, " and ".join(plan.cpu_collectives))]
    if case.mpi is not None and plan.stack.run.mpi:
        return [skipped(NAME, "MPI carries them: see fabric provider")]
    return [skipped(NAME, "no block is known to compute across nodes")]


def _between_gpus(case: ContractCase) -> Check:
    plan, who = case.plan, " and ".join(case.plan.gpu_collectives)
    kind = plan.site.gpu_fabric_of(plan.partition)
    if kind not in FAST:
        return _by_sockets(case, who)
    network = gpu_network(plan, case.engine)
    if network is not None:
        return _over(case, who, kind, network)
    if kind == "infiniband" and set(case.packages) & set(LIBIBVERBS):
        return holds(NAME, f"{who} finds InfiniBand through libibverbs and silently uses sockets where that fails")
    missing = "has no libibverbs" if kind == "infiniband" else f"has no plugin of {who} for {kind}"
    reason = f"the image {missing}: {who} will send data between nodes, such as gradients, over TCP sockets"
    return Check(NAME, "doubtful", reason, _remedy(kind), "", _kind_path(case))


def _remedy(kind: str) -> str:
    if kind == "infiniband":
        return "put libibverbs1 (libibverbs on Rocky Linux) into the image: --add os_packages"
    if kind in ("slingshot", "efa"):
        return "put the plugin into the image: --add aws_ofi_nccl; or take collectives by MPI where the block can"
    return "take collectives by MPI where the block has the choice"


def _over(case: ContractCase, who: str, kind: str, network: GpuNetwork) -> Check:
    """It is there; a plugin in the image sees the fabric by a libfabric that can drive it, which is the host's."""
    providers = USUAL[kind]
    inside = network.engine or network.name != NCCL_LIBFABRIC or case.providers & set(providers)
    if inside or kind in case.engine.brings_fabrics or shown(case):
        return holds(NAME, f"{who} over {network.text}; NCCL_NET={network.name} keeps it from sockets")
    reason = (
        f"the plugin of {who} in the image sends over libfabric, and no {' or '.join(providers)} is visible there: "
        f"{who} stops as it starts (NCCL_NET={network.name})"
    )
    remedy = "name the host's folders with libfabric in fabric.libraries and show them by mpi.binds"
    outcome: Outcome = "doubtful" if case.host is None else "broken"
    path = case.site.fabric_path(case.plan.partition, "libraries")
    return Check(NAME, outcome, reason, remedy, f"the host's libfabric with {providers[0]}", path)


def _by_sockets(case: ContractCase, who: str) -> Check:
    """It has no other way than TCP here; the interface should be the one that is meant."""
    fabric, path = case.plan.fabric, case.site.fabric_path(case.plan.partition, "interface")
    if fabric.interface is not None:
        return holds(NAME, f"{who} sends by TCP over {fabric.interface}, its only way here")
    return unknown(NAME, f"{who} sends by TCP, its only way here, over the interface that it finds first", path)


def _kind_path(case: ContractCase) -> str:
    gpu = case.partition.gpu
    own = gpu is not None and gpu.fabric is not None
    partition = case.plan.partition
    return f"partitions.{partition}.gpu.fabric" if own else case.site.fabric_path(partition, "kind")
