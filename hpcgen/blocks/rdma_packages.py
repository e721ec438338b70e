"""The distribution's rdma-core, by which libraries drive InfiniBand."""

from __future__ import annotations

RDMA_HEADERS = {
    "apt": ["libibverbs-dev", "librdmacm-dev"],
    "dnf": ["rdma-core-devel"],
    "zypper": ["rdma-core-devel"],
}
"""Packages to build with libibverbs and librdmacm."""

RDMA_LIBRARIES = {
    "apt": ["ibverbs-providers", "libibverbs1", "librdmacm1"],
    "dnf": ["libibverbs", "librdmacm"],
    "zypper": ["libibverbs1", "librdmacm1"],
}
"""Packages to run with: both libraries, and the drivers of network cards.

openSUSE's libibverbs1 requires the drivers, as suse/rdma-core.spec of github.com/linux-rdma/rdma-core says.
"""
