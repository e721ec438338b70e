"""For which GPUs there are wheels of PyTorch; what is compiled against it has to agree with that."""

from __future__ import annotations

from packaging.version import Version

from hpcgen.blocks.capabilities import GpuUnused
from hpcgen.blocks.declared import Facts
from hpcgen.blocks.old_driver import old_driver
from hpcgen.core.model.nodes import GpuVendor

OLDEST_DRIVER = {"x86_64": "440.33", "aarch64": "580"}
"""The first NVIDIA driver that runs a CUDA of one of the wheels. A test holds it against the table."""

OLDEST_CAPABILITY = {"x86_64": "3.7", "aarch64": "8.0"}
"""The oldest NVIDIA GPU that one of the wheels has code for. A test holds it against the table."""

AMD_TARGETS = frozenset(
    {
        "gfx900",
        "gfx906",
        "gfx908",
        "gfx90a",
        "gfx942",
        "gfx1030",
        "gfx1100",
        "gfx1101",
        "gfx1102",
        "gfx1200",
        "gfx1201",
    }
)
"""What the wheels with ROCm have code for. A test holds it against the table."""


ACCELERATORS: dict[GpuVendor, str] = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu"}
"""What wheels for the GPUs of a vendor are called."""


def wheel_accelerator(facts: Facts) -> str:
    """What a wheel of PyTorch computes on there by default: ``cuda``, ``rocm``, ``xpu`` or ``cpu``."""
    gpu = facts.partition.gpu
    if gpu is None or why_no_wheel(facts):
        return "cpu"
    return ACCELERATORS[gpu.vendor]


def why_no_wheel(facts: Facts) -> GpuUnused | None:
    """Why no wheel computes on the partition's GPU; None if one does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None:
        return GpuUnused("there is none")
    if gpu.vendor == "intel":
        return None if facts.architecture == "x86_64" else GpuUnused("the wheels for Intel's GPUs are only for x86_64")
    if gpu.vendor == "nvidia":
        driver, capability = OLDEST_DRIVER[facts.architecture], OLDEST_CAPABILITY[facts.architecture]
        if old := old_driver(gpu, driver, "the wheels with CUDA need"):
            return old
        if gpu.capability is not None and Version(gpu.capability) < Version(capability):
            return GpuUnused(f"the wheels with CUDA have no code for capability {gpu.capability}")
        return None
    if facts.architecture != "x86_64":
        return GpuUnused("the wheels with ROCm are only for x86_64")
    if gpu.target is not None and gpu.target not in AMD_TARGETS:
        return GpuUnused(f"the wheels with ROCm have no code for {gpu.target}")
    return None
