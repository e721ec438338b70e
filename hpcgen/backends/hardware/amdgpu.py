"""AMD's GPU driver: the release that a version of its kernel module belongs to."""

from __future__ import annotations

_RELEASES = {
    "6.0": "5.5",
    "6.2": "5.7",
    "6.3": "6.0",
    "6.7": "6.1",
    "6.8": "6.2",
    "6.10": "6.3",
    "6.12": "6.4",
    "6.14": "30.10",
    "6.16.6": "30.20",
    "6.16.13": "30.30",
    "6.19.14": "31.40",
}
"""Source: names of packages of repo.radeon.com, which have both: ``amdgpu-dkms_6.10.5.60300`` is that of 6.3."""


def driver_release(module: str) -> str:
    """The release, such as 6.3, of a kernel module's version, such as 6.10.5; "" for one that is not known.

    AMD's tables name releases; ``/sys/module/amdgpu/version`` has the module's.
    """
    return next((release for start, release in _RELEASES.items() if f"{module}.".startswith(f"{start}.")), "")
