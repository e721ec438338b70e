"""How engines that do as Podman does are told of a node's GPUs: by CDI names, or by device files.

AMD's and Intel's libraries are in the image, so their device files are enough. NVIDIA's come with the CDI name that
``nvidia-ctk cdi generate`` makes on the host. AMD's toolkit makes ``amd.com/gpu=all``, which stands for the same device
files; a profile has it (``gpu.cdi``) where the host does.
Source: NVIDIA Container Toolkit, "Support for Container Device Interface"; github.com/ROCm/container-toolkit@192fe8e,
docs/container-runtime/{cdi-guide,running-workloads}.rst, internal/cdi/cdi.go.
"""

from __future__ import annotations

from types import MappingProxyType

from hpcgen.backends.engines.base import Call

_USUAL = MappingProxyType({"nvidia": ("nvidia.com/gpu=all",), "amd": ("/dev/kfd", "/dev/dri"), "intel": ("/dev/dri",)})


def gpu_devices(call: Call) -> tuple[str, ...]:
    """Values of the option ``--device`` that show all GPUs of a node inside; none without GPUs."""
    if call.gpu and call.gpu_cdi:
        return (call.gpu_cdi,)
    return _USUAL.get(call.gpu, ())
