"""NVIDIA's licences: a person accepts them wherever its libraries are installed, as archives or as wheels."""

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
