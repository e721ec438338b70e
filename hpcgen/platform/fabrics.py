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


def drivers(provider: str) -> tuple[str, ...]:
    """A provider, and what else is as good as it."""
    return SAME_DEVICES.get(provider, (provider,))
