"""A driver of GPUs that is too old for packages, as the reason why a block leaves a node's GPUs alone."""

from __future__ import annotations

from packaging.version import Version

from hpcgen.blocks.capabilities import GpuUnused
from hpcgen.core.model.nodes import Gpu


def old_driver(gpu: Gpu, oldest: str, what: str) -> GpuUnused | None:
    """That the node's driver is older than ``what`` needs; None where it is not, or not known.

    ``what``: with the verb, such as ``cuda12 needs``.
    """
    if gpu.driver is None or Version(gpu.driver) >= Version(oldest):
        return None
    return GpuUnused(f"the node's driver is {gpu.driver_label}, and {what} {oldest} or newer", by_driver=True)
