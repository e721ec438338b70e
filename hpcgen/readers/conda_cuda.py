"""Which packages of conda are built with NVIDIA's CUDA, and when a solver takes those builds."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.readers.conda_text import spec_name

CUDA_PACKAGES = ("cuda-version", "cudatoolkit")
"""Packages of which one is there wherever others are built with CUDA."""
WITH_CUDA = ("pytorch", "pytorch-gpu", "tensorflow", "tensorflow-gpu", "jax", "jaxlib", "cupy", "numba-cuda", "cudf")
"""Packages that conda-forge has with CUDA, and that a solver takes so where the node has a driver for it."""


def asked_with_cuda(needs: Iterable[str]) -> list[str]:
    """Names of the packages that are taken with CUDA where the node has a driver, in the order of what is asked."""
    named = ((spec_name(need), need) for need in needs)
    return [name for name, need in named if name in (*CUDA_PACKAGES, *WITH_CUDA) and "cpu" not in need]
