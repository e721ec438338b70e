"""Kinds of fabric, and what drives them: what contract, preflight and tests of an image all go by."""

from __future__ import annotations

FAST = ("omni-path", "infiniband", "slingshot", "efa")
SLOW = ("tcp", "sockets", "udp", "net")
"""Fabrics with a provider of their own, and the providers over TCP that work everywhere and are slow."""

SAME_DEVICES = {"verbs": ("verbs", "mlx", "ucx"), "mlx": ("mlx", "ucx")}
"""Other ways to the same hardware: libfabric's mlx is over UCX, and UCX drives what verbs drives."""

USUAL = {
    "omni-path": ("psm2", "opx"),
    "infiniband": ("verbs", "mlx", "ucx"),
    "slingshot": ("cxi",),
    "efa": ("efa",),
}
"""What drives each kind of fabric, where the profile does not say it."""


NCCL_VERBS, NCCL_LIBFABRIC = "IB", "AWS Libfabric"
"""Networks of NCCL and RCCL, by the names that ``NCCL_NET`` has for them: their own over verbs, and aws-ofi-nccl's.

Source: NCCL's environment variables (docs.nvidia.com/deeplearning/nccl/user-guide); of the plugin, which takes that
name in every release, nccl_ofi_interface_nvidia in aws/aws-ofi-nccl from v1.9.2-aws to v1.21.1.
"""

SOCKETS = "Socket"
"""NCCL's and RCCL's own network over TCP, which works everywhere and is slow."""

ONECCL = "oneCCL"
"""Intel's collectives between GPUs, which send by libfabric and take nothing of ``NCCL_…``."""

GPU_NETWORKS = {"infiniband": NCCL_VERBS, "slingshot": NCCL_LIBFABRIC, "efa": NCCL_LIBFABRIC}
"""The one that sends over each kind of fabric."""

GPU_NETWORK_BLOCKS = {NCCL_LIBFABRIC: "aws_ofi_nccl"}
"""The block that brings a network into the image, where the library of collectives has it not in itself."""


def drivers(provider: str) -> tuple[str, ...]:
    """A provider, and what else is as good as it."""
    return SAME_DEVICES.get(provider, (provider,))


_SYMBOLS = ((1, 5), (1, 7), (1, 9), (1, 12), (1, 13), (1, 14), (1, 20), (2, 0), (2, 5))
"""The releases of libfabric that brought the symbol versions ``FABRIC_1.1``, ``FABRIC_1.2``, and so on.

What is linked with a release asks for the newest that it has, because ``fi_getinfo`` is of that version.
Source: libfabric.map.in of ofiwg/libfabric in every tag up to 2.6.0.
"""


def libfabric_symbols(version: str) -> int:
    """The N of the newest ``FABRIC_1.N`` that a release of libfabric has, and that what is linked with it asks for."""
    here = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return sum(here >= since for since in _SYMBOLS)


def libfabric_range(symbols: int) -> str:
    """The range of releases that have nothing newer than ``FABRIC_1.N``; "" for all that are known."""
    return "<{}.{}".format(*_SYMBOLS[symbols]) if symbols < len(_SYMBOLS) else ""
