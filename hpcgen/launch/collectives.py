"""By which network GPUs of several nodes send each other data, who brings it into the container, and what is set.

NCCL and RCCL choose among the networks that work where they start, and fall to TCP sockets without a word. Where one
is meant, ``NCCL_NET`` names it, and they stop if it does not work. On one node that would stop them for nothing.
Source: github.com/HewlettPackard/shs-ccl-docs@438fcce ccl_env.sh; github.com/eth-cscs/cscs-docs@80abed1
docs/software/communication/nccl.md.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from hpcgen.backends.engines import Engine
from hpcgen.backends.hardware.fabrics import GPU_NETWORKS, NCCL_LIBFABRIC, NCCL_VERBS, ONECCL
from hpcgen.core.model.plan import Plan

DEVICES = {("infiniband", NCCL_VERBS): "/dev/infiniband", ("slingshot", NCCL_LIBFABRIC): "/dev/cxi0"}
"""What a node must have for a network of NCCL over a kind of fabric, as far as one name is everywhere the same."""


class GpuNetwork(msgspec.Struct, frozen=True):
    """A network of NCCL or RCCL.

    ``name``: as ``NCCL_NET`` has it. ``engine``: the engine that brings the plugin into the container; "" where the
    image has what it takes.
    """

    name: str
    engine: str = ""

    @property
    def text(self) -> str:
        """The network and who brings it, for people."""
        what = "libibverbs" if self.name == NCCL_VERBS else "the plugin"
        return f"{self.name}, {what} of {self.engine or 'the image'}"


def gpu_network(plan: Plan, engine: Engine, of: Collection[str] | None = None) -> GpuNetwork | None:
    """The network that a job's GPUs are meant to use; None on one node, or where nothing is known to bring it.

    A plugin in the image was asked for, and is taken before that of the engine.

    ``of``: libraries of collectives; those of the plan's job if None.
    """
    libraries = set(plan.gpu_collectives if of is None else of) - {ONECCL}
    kind = plan.site.gpu_fabric_of(plan.partition)
    meant = GPU_NETWORKS.get(kind, "")
    if not libraries or not meant:
        return None
    if any(meant in block.gpu_networks for block in plan.blocks):
        return GpuNetwork(meant)
    return GpuNetwork(meant, engine.name) if libraries <= set(engine.brings_collectives.get(kind, ())) else None


def by_engine(plan: Plan, engine: Engine) -> tuple[str, ...]:
    """Libraries of the job for which the engine is to bring its plugin."""
    network = gpu_network(plan, engine)
    return tuple(plan.gpu_collectives) if network is not None and network.engine else ()


def plugin_folders(plan: Plan, engine: Engine) -> tuple[str, ...]:
    """Folders inside that the engine's plugin lies in, and that the loader has to look through first."""
    return engine.collectives_folders if by_engine(plan, engine) else ()


def collectives_environment(plan: Plan, engine: Engine) -> dict[str, str]:
    """Variables of collectives: the network that is meant, and the interface of what speaks IP between nodes."""
    network, interface = gpu_network(plan, engine), plan.fabric.interface
    found = {"NCCL_NET": network.name} if network is not None else {}
    if interface is not None:
        names = ("CCL_KVS_IFACE" if each == ONECCL else "NCCL_SOCKET_IFNAME" for each in plan.gpu_collectives)
        found |= dict.fromkeys(names, interface)
    if plan.fabric.provider is not None and plan.job.ranks > 1 and any_oneccl(plan):
        # A system may set one that the libfabric of oneCCL's wheels does not have, as Aurora does with cxi.
        found["FI_PROVIDER"] = plan.fabric.provider
    if interface is not None and plan.cpu_collectives:
        found["GLOO_SOCKET_IFNAME"] = interface
    return found


def any_oneccl(plan: Plan) -> bool:
    """Whether GPUs of the job's ranks send each other data by oneCCL, on one node too."""
    return bool(plan.job.gpus_per_node) and any(block.gpu_collectives == ONECCL for block in plan.blocks)


def by_plugin_folders(path: str, folders: tuple[str, ...]) -> str:
    """A path that the loader looks through, after the folders of the engine's plugin."""
    return ":".join([*folders, *filter(None, [path])])


def collectives_text(plan: Plan, engine: Engine) -> str:
    """What the preflight says; "" where there is nothing to say."""
    network = gpu_network(plan, engine)
    if network is None:
        return ""
    who = " and ".join(plan.gpu_collectives)
    return f"{who} over {network.text}; if that fails, NCCL stops (NCCL_NET) instead of using sockets"
