"""torchvision: models, transforms and data sets of images, for PyTorch."""

from __future__ import annotations

from hpcgen.blocks.base import Context
from hpcgen.blocks.torch_library import TorchLibrary

IMAGE_FORMATS = ("PNG", "JPEG", "WEBP", "NVJPEG")
"""What setup.py would look for libraries of; Pillow reads files without."""


class Torchvision(TorchLibrary):
    """torchvision, images for PyTorch.  Source: https://github.com/pytorch/vision

    Each release is for one release of PyTorch, up to 0.29. For AMD's GPUs it is compiled, because no public file has
    the hash of a wheel: models and transforms run on the GPU through PyTorch, its own operators only on the CPU.
    """

    name = "torchvision"
    distributions = ("torchvision",)
    needed = ("pillow",)
    proof = (
        "import torch, torchvision; boxes = torch.tensor([[0.0, 0, 9, 9], [0, 0, 9, 8]]); "
        "print('boxes kept:', torchvision.ops.nms(boxes, torch.tensor([0.5, 0.6]), 0.5).tolist())"
    )
    proves = "boxes kept: [1]"

    def variables(self, ctx: Context) -> dict[str, str]:
        """Source: setup.py of the release."""
        formats = {f"TORCHVISION_USE_{each}": "0" for each in IMAGE_FORMATS}
        return {"BUILD_VERSION": ctx.version, "FORCE_CUDA": "0", **formats}

    def notices(self, ctx: Context) -> list[str]:
        """What a compiled one has not."""
        if ctx.options.install != "source":
            return []
        notes = ["torchvision.io cannot decode images, since it is compiled without image libraries: use Pillow"]
        if ctx.options.accelerator != "cpu":
            notes.append("torchvision's own operators (nms, roi_align, deform_conv2d) run only on the CPU")
        return notes
