"""The network between nodes: its provider is there on both sides, and nothing lets MPI fall back to TCP in silence.

The same for what computes together without MPI: by which library, over which network.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.backends.hardware.fabrics import (
    FAST,
    NCCL_LIBFABRIC,
    ONECCL,
    SLOW,
    USUAL,
    drivers,
    libfabric_range,
    libfabric_symbols,
)
from hpcgen.launch.collectives import GpuNetwork, gpu_network
from hpcgen.planning.contract.case import Check, ContractCase, Outcome, holds, skipped, unknown
from hpcgen.planning.contract.mpi import NO_MPI, OWN_LAUNCHER

LISTS = ("FI_PROVIDER", "I_MPI_OFI_PROVIDER", "MPICH_OFI_USE_PROVIDER")
"""Variables that name libfabric's providers: one or several by commas, ``^`` in front of those to leave out."""


def provider(case: ContractCase) -> Check:
    """The fabric's provider can be loaded inside: the image has it, or the host's is visible there."""
    name, fabric = "fabric provider", case.plan.fabric
    if case.mpi is None or not case.plan.stack.run.mpi:
        return skipped(name, NO_MPI)
    if fabric.kind not in FAST:
        return skipped(name, f"the fabric is {fabric.kind}")
    if case.host is None:
        return skipped(name, f"{OWN_LAUNCHER}, on one node")
    if fabric.provider is None:
        usual = [each for each in USUAL[fabric.kind] if each in case.providers]
        if usual:
            return holds(name, f"the image has {' and '.join(usual)}; the profile names none")
        return unknown(name, f"the profile names no provider for {fabric.kind}", _path(case, "provider"))
    wanted = fabric.provider
    here = next((each for each in drivers(wanted) if each in case.providers), "")
    if here:
        return holds(name, f"{here} works in the image" + ("" if here == wanted else f", which drives {fabric.kind}"))
    if fabric.kind in case.engine.brings_fabrics:
        return holds(name, f"{case.engine.name} brings in the host's libraries for {fabric.kind}")
    folder = shown(case)
    if folder:
        return holds(name, f"the host's {wanted} is visible inside: {folder}")
    reason = f"the image cannot use {fabric.kind} through {wanted}, and no host library for it is visible inside"
    remedy = (
        "name the host's folders with it in fabric.libraries and show them by mpi.binds, "
        "or take an MPI whose block brings it"
    )
    outcome: Outcome = "broken" if case.swapped or wanted in ("psm2", "cxi") else "doubtful"
    expected = f"{wanted} in the image, or the host's"
    return Check(name, outcome, f"{reason}: MPI falls back to TCP, or stops", remedy, expected, _path(case, "provider"))


def shown(case: ContractCase) -> str:
    """A folder of the host with the fabric's libraries that is bound; its own libfabric among those of its MPI too."""
    host = case.host
    if host is None:
        return ""
    if host.bind_modules:
        return f"by {host.bind_modules[-1]}"
    folders = [*case.plan.fabric.libraries, *(folder for folder in host.libraries if "libfabric" in folder)]
    return next((folder for folder in folders if covered(case, folder)), "")


def covered(case: ContractCase, folder: str) -> bool:
    """Whether a folder of the host is shown inside by one of the MPI's binds, or single files of it are."""
    binds = case.host.binds if case.host is not None else []
    inside = f"{folder.rstrip('/')}/"
    if any(inside.startswith(f"{bind.target.rstrip('/')}/") for bind in binds):
        return True
    return any(bind.file and bind.target.startswith(inside) for bind in binds)


def libfabric(case: ContractCase) -> Check:
    """If the host's libfabric replaces the image's, it has the symbol versions that the image's MPI needs."""
    name, block, here = "libfabric", case.plan.block("libfabric"), case.plan.fabric.libfabric
    if block is None or case.swapped or case.plan.fabric.kind not in case.engine.brings_fabrics:
        return skipped(name, "the host's libfabric does not replace the image's")
    asked, path = libfabric_symbols(block.version), _path(case, "libfabric")
    what = f"programs linked with libfabric {block.version} of the image require FABRIC_1.{asked}"
    if here is None:
        reason = f"{what}, and the profile does not say which libfabric {case.engine.name} puts in its place"
        remedy = f'say it in {path}, or link with an older one: --set "libfabric.version={libfabric_range(asked - 1)}"'
        return Check(name, "doubtful", reason, remedy, "", path)
    has = libfabric_symbols(here)
    if asked <= has:
        return holds(name, f"{what}, and the host's {here} in its place has FABRIC_1.{has}")
    reason = f"{what}, and the host's {here} in its place ends with FABRIC_1.{has}: MPI does not start"
    remedy = f'link with an older one: --set "libfabric.version={libfabric_range(has)}"'
    return Check(name, "broken", reason, remedy, f"a host's libfabric with FABRIC_1.{asked}", path)


def fallback(case: ContractCase) -> list[Check]:
    """No variable of site or stack lets MPI choose TCP where there is something faster."""
    name, fabric = "TCP fallback", case.plan.fabric
    if case.mpi is None or not case.plan.stack.run.mpi:
        return [skipped(name, NO_MPI)]
    if fabric.kind not in FAST:
        return [skipped(name, f"the fabric is {fabric.kind}")]
    if case.host is None:
        return [skipped(name, f"{OWN_LAUNCHER}, on one node")]
    if fabric.provider in SLOW:
        return [holds(name, f"the profile names {fabric.provider} for {fabric.kind} on nodes of {case.plan.partition}")]
    found = []
    for variable, value, path in _variables(case):
        why = _slow(variable, value)
        if why:
            reason = f"{variable}={value} {why}, although there is {fabric.kind}"
            wanted = fabric.provider or "the fabric's provider"
            remedy = f"name only {wanted}, or omit {variable}"
            expected = f"{variable}={fabric.provider}" if variable in LISTS and fabric.provider is not None else ""
            found.append(Check(name, "broken", reason, remedy, expected, path))
    return found or [holds(name, "no variable selects TCP")]


def _path(case: ContractCase, field: str) -> str:
    return case.site.fabric_path(case.plan.partition, field)


def _variables(case: ContractCase) -> Iterator[tuple[str, str, str]]:
    """Variables of the job with the place of each in the profile; "" for the stack's."""
    stack, partition = case.plan.stack.run.environment, case.plan.partition
    for name, value in case.site.environment_of(partition).items():
        if name not in stack:
            own = f"partitions.{partition}." if name in case.partition.environment else ""
            yield name, value, f"{own}environment.{name}"
    for name, value in stack.items():
        yield name, value, ""
    for name, value in case.host.environment.items() if case.host is not None else ():
        yield name, value, case.plan.mpi_path("environment", name)


def _slow(variable: str, value: str) -> str:
    """How a variable lets MPI take TCP; "" if it does not."""
    value = value.strip().lower()
    without = value.startswith("^")
    names = [each.partition(";")[0].strip() for each in value.lstrip("^").split(",") if each.strip()]
    if variable in LISTS:
        if without:
            return "" if "tcp" in names else "leaves tcp in"
        return "lets libfabric use TCP" if any(name in SLOW for name in names) else ""
    if variable == "I_MPI_FABRICS":
        return "asks for TCP" if "tcp" in value.split(":") else ""
    if variable == "UCX_TLS":
        return "lets UCX use TCP" if "tcp" in names and not without else ""
    if variable == "OMPI_MCA_pml" and not without:
        # ob1 goes over the btl components, of which Open MPI 5 has no fast one between nodes but ofi and uct.
        return "goes over Open MPI's btl components, tcp among them" if names == ["ob1"] else ""
    return ""


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
    if plan.gpu_collectives == [ONECCL]:
        told = f" (FI_PROVIDER: {plan.fabric.provider})" if plan.fabric.provider else ""
        reason = f"{who} sends by the libfabric of its own wheels{told}, which is untested over {kind}"
        return unknown(NAME, reason, case.site.fabric_path(plan.partition, "provider"))
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
        return "put libibverbs1 (libibverbs on Rocky Linux) into the image: --add apt:libibverbs1"
    if kind in ("slingshot", "efa"):
        return (
            "images have the plugin by default where it fits the rest: --add aws_ofi_nccl says what is against it here"
        )
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
