"""NVIDIA's licences: the user accepts them wherever its libraries are installed, as archives or as wheels."""

from __future__ import annotations

from hpcgen.blocks.capabilities import Licence

CUDA = Licence(
    "nvidia-cuda-eula",
    "End User License Agreement of NVIDIA's CUDA Toolkit",
    "https://docs.nvidia.com/cuda/eula/index.html",
)
CUDNN = Licence(
    "nvidia-cudnn",
    "NVIDIA's Software License Agreement for cuDNN",
    "https://docs.nvidia.com/deeplearning/cudnn/latest/reference/eula.html",
)
LICENCES = (CUDA, CUDNN)
"""Of frameworks whose wheels bring both."""

COMPANIONS = (
    *("nvidia-cublas*", "nvidia-cuda-*", "nvidia-cudnn*", "nvidia-cufft*", "nvidia-cufile*", "nvidia-curand*"),
    *("nvidia-cusolver*", "nvidia-cusparse*", "nvidia-nccl*", "nvidia-nvjitlink*", "nvidia-nvshmem*", "nvidia-nvtx*"),
    *("nvidia-nvvm*", "cuda-bindings", "cuda-pathfinder", "cuda-toolkit"),
)
"""Packages with which the index's wheels of frameworks bring CUDA, as locks name them.

Source: the hashed lists of building_blocks/wheels, which have all that these wheels need.
"""
