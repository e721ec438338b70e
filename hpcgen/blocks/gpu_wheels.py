"""Packages of the Python package index whose wheels compute on GPUs."""

from __future__ import annotations

from hpcgen.core.support.package_names import normal_name

CUDA_WHEELS = ("torch", "torchvision", "torchaudio", "jax-cuda12-plugin", "jax-cuda13-plugin", "onnxruntime-gpu")
"""Packages whose wheels in the index are built for NVIDIA's CUDA, and carry it or require it.

Source: what their wheels of x86-64 require there (torch, onnxruntime-gpu, jax).
"""


def vendor_of(asked: str, version: str) -> str:
    """Whose GPUs a package of the index computes on; empty for one that computes on none as far as is known.

    ``asked``: its name, with extras as in ``jax[cuda12]``.
    """
    name, _, extras = asked.partition("[")
    local = version.partition("+")[2]
    if local.startswith("rocm") or "rocm" in extras:
        return "amd"
    if local.startswith("cpu"):
        return ""
    if "cuda" in extras:
        return "nvidia"
    plain = normal_name(name)
    return "nvidia" if plain in CUDA_WHEELS or plain.startswith(("nvidia-", "cupy-cuda")) else ""
