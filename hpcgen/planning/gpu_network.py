"""What lets GPUs of several nodes send over their network is in the image by default, where it changes nothing else.

NCCL and RCCL fall to TCP sockets without a word where it is missing. Whether it is needed is known once there is a
plan: only then it is known what computes, and by what.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.backends.engines import engine_for
from hpcgen.backends.hardware.fabrics import GPU_NETWORK_BLOCKS, GPU_NETWORKS, ONECCL
from hpcgen.blocks.requirements import Origin, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan
from hpcgen.launch.collectives import gpu_network
from hpcgen.recipe.assemble import assemble


def wanted(plan: Plan, catalog: Catalog, kept: Mapping[str, str]) -> Requirement | None:
    """The block that a plan lacks for the network of its GPUs; None where nothing is missing, or somebody decided.

    Engine and image may bring it; a stack or profile that sets ``NCCL_NET`` has chosen; and a plan that is to keep what
    there was keeps that there was none.

    ``kept``: versions of an earlier plan's blocks, where there is one.
    """
    kind = plan.site.gpu_fabric_of(plan.partition)
    block = GPU_NETWORK_BLOCKS.get(GPU_NETWORKS.get(kind, ""))
    # Of the image, whatever its job: another number of nodes makes no other image.
    libraries = sorted({each.gpu_collectives for each in plan.in_image} - {"", ONECCL})
    if block is None or not libraries or not plan.stack.run.mpi or not catalog.has_block(block):
        return None
    if "NCCL_NET" in plan.stack.run.environment or "NCCL_NET" in plan.site.environment_of(plan.partition):
        return None
    if gpu_network(plan, engine_for(plan.engine), libraries) is not None or (kept and block not in kept):
        return None
    origin = Origin(f"{' and '.join(libraries)} over {kind}", lambda: None, "stack")
    return Requirement(catalog.identifier(block), {block: ""}, origin, {})


def only_adds(before: Plan, after: Plan, catalog: Catalog) -> bool:
    """Whether a plan has all that another has as it was there; an HpcgenError if no recipe can be made of it."""
    assemble(after, catalog)
    there = {block.name: (block.version, block.options) for block in after.blocks}
    return all(there.get(block.name) == (block.version, block.options) for block in before.blocks)
