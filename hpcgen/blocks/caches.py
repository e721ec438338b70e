"""Caches of well-known software, by the variables of its documentation.

Ranks that compile into one folder crash or read each other's half-written files: triton-lang/triton#2688 and #11512,
pytorch/pytorch#119698, ROCm/MIOpen#1878 and #2214; and PyTorch can load code there that is another rank's
(pytorch/pytorch#188332). So what is compiled is each rank's own.

Sources: docs.pytorch.org, recipes/torch_compile_caching_configuration_tutorial and hub; torch/utils/cpp_extension.py;
python/triton/knobs.py of triton-lang/triton; rocm.docs.amd.com, MIOpen, conceptual/cache and perfdb; NVIDIA's CUDA C++
Programming Guide, "CUDA Environment Variables"; docs.jax.dev, persistent_compilation_cache; docs.vllm.ai,
configuration/env_vars; huggingface.co/docs/huggingface_hub, package_reference/environment_variables;
tensorflow.org/hub/caching; keras/src/backend/config.py of keras-team/keras; numba.readthedocs.io, reference/envvars;
docs.cupy.dev, reference/environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpcgen.core.model.caches import Cache

TORCH = (
    Cache("TORCH_HOME", "download", home=".cache/torch"),
    Cache("TORCHINDUCTOR_CACHE_DIR", "compiled"),
    Cache("TORCH_EXTENSIONS_DIR", "compiled", home=".cache/torch_extensions"),
)
TRITON = (Cache("TRITON_CACHE_DIR", "compiled", home=".triton/cache"),)
JAX = (Cache("JAX_COMPILATION_CACHE_DIR", "compiled", only_kept=True),)
VLLM = (Cache("VLLM_CACHE_ROOT", "compiled", home=".cache/vllm"),)
HUGGING_FACE = (
    Cache("HF_HOME", "download", home=".cache/huggingface"),
    # The user's token does not go to a folder that a project shares.
    Cache("HF_TOKEN_PATH", "user", home=".cache/huggingface/token", moved="HF_HOME"),
)
TENSORFLOW_HUB = (Cache("TFHUB_CACHE_DIR", "download", home=".cache/tfhub_modules"),)
KERAS = (Cache("KERAS_HOME", "download", home=".keras"),)

_OF_GPUS = {
    "nvidia": (Cache("CUDA_CACHE_PATH", "compiled", home=".nv/ComputeCache"),),
    "amd": (
        Cache("MIOPEN_CUSTOM_CACHE_DIR", "compiled", home=".cache/miopen"),
        Cache("MIOPEN_USER_DB_PATH", "compiled", home=".config/miopen"),
    ),
}
_OF_PACKAGES = {
    **dict.fromkeys(("torch", "pytorch", "torchvision", "torchaudio"), (*TORCH, *TRITON)),
    "triton": TRITON,
    "jax": JAX,
    "vllm": (*TORCH, *TRITON, *VLLM, *HUGGING_FACE),
    **dict.fromkeys(
        ("transformers", "diffusers", "datasets", "huggingface-hub", "accelerate", "sentence-transformers"),
        HUGGING_FACE,
    ),
    "tensorflow": KERAS,
    "keras": KERAS,
    "tf-keras": KERAS,
    "tensorflow-hub": TENSORFLOW_HUB,
    "numba": (Cache("NUMBA_CACHE_DIR", "compiled", home=".cache/numba"),),
    "cupy": (Cache("CUPY_CACHE_DIR", "compiled", home=".cupy/kernel_cache"),),
}


def of_gpus(vendors: Iterable[str]) -> tuple[Cache, ...]:
    """What the libraries of these vendors' GPUs compile and measure at run time."""
    return tuple(cache for vendor in vendors for cache in _OF_GPUS.get(vendor, ()))


def of_packages(names: Iterable[str]) -> tuple[Cache, ...]:
    """Those of packages, by their names in the Python index and in conda's channels."""
    normal = [re.sub(r"-(cuda|rocm-)[0-9-]+x$", "", re.sub(r"[-_.]+", "-", name).lower()) for name in names]
    return tuple(dict.fromkeys(cache for name in normal for cache in _OF_PACKAGES.get(name, ())))
