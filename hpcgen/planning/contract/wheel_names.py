"""What names of packages say of the GPUs that they are built for, and what the table of their block says of drivers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from hpcgen.blocks.requirements import in_range
from hpcgen.core.model.project import BLOCK, ProjectPackage
from hpcgen.planning.contract.case import ContractCase

NAME = "Python packages"
_CUDA = r"-cu(?:da)?(1[0-9])(?:x|\d|\b)|\+cu(1[0-9])"
_ROCM = r"-rocm\b|-rocm\d|\+rocm"
_NO_CUDA = ("nvidia-ml-py", "nvidia-pyindex", "nvidia-physicsnemo")
"""NVIDIA's packages that are pure Python and require none for CUDA, by the files and METADATA of their releases in the
package index on 2026-11-28. nvidia-physicsnemo 1.0 still required one, and every nvidia-modulus does."""


class Hosts(msgspec.Struct, frozen=True):
    """Packages of the index that contain an MPI or need something of the host.

    mpi_wheels: packages that are an MPI, or have one inside, with its name.
    cpu_wheels: features of an x86-64 CPU without which a package does not start, by its name with a range.
    cuda_drivers: the oldest driver of NVIDIA's for each CUDA.
    cuda_alone: packages whose names do not say that they are built for CUDA, by name with a range, and what is known.
    """

    mpi_wheels: Mapping[str, str] = {}
    cpu_wheels: Mapping[str, str] = {}
    cuda_drivers: Mapping[str, str] = {}
    cuda_alone: Mapping[str, str] = {}


def hosts_of(case: ContractCase) -> Hosts:
    """What the release table of the block that installs a user's packages says of them."""
    row = case.releases.get(BLOCK)
    return msgspec.convert(dict(row.values) if row is not None else {}, Hosts)


def said(package: ProjectPackage) -> str:
    """A package with its version and its line."""
    return f"{package.name} {package.version} ({package.origin})".replace("  ", " ")


def cuda_of(package: ProjectPackage) -> str:
    """The CUDA that a package is built for, by its name or version; empty where neither says one."""
    found = re.search(_CUDA, f"{package.name}+{package.version.partition('+')[2]}")
    return (found[1] or found[2]) if found else ""


def cuda_driver(case: ContractCase, number: str, driver: str | None) -> str:
    """The oldest driver for a CUDA, where that of the node is older; else empty."""
    oldest = hosts_of(case).cuda_drivers.get(number, "")
    return oldest if driver is not None and oldest and not in_range(driver, f">={oldest}") else ""


def gpu_vendor(package: ProjectPackage) -> str:
    """Whose GPUs a package is built for, by its name or version; empty where neither says so."""
    if re.search(_ROCM, f"{package.name}+{package.version.partition('+')[2]}"):
        return "amd"
    if package.version.endswith("+xpu") or package.name in ("triton-xpu", "pytorch-triton-xpu"):
        return "intel"
    of_cuda = cuda_of(package) or (package.name.startswith("nvidia-") and package.name not in _NO_CUDA)
    return "nvidia" if of_cuda else ""
