"""torchaudio: transforms and models of sound, for PyTorch."""

from __future__ import annotations

from packaging.version import Version

from hpcgen.blocks.base import Context
from hpcgen.blocks.torch_library import TorchLibrary


class Torchaudio(TorchLibrary):
    """torchaudio, sound for PyTorch.  Source: https://github.com/pytorch/audio

    Each release is for the PyTorch of the same version; 2.11.0, the last one, also for all later ones.
    """

    name = "torchaudio"
    distributions = ("torchaudio",)
    proof = (
        "import torch, torchaudio; one = torch.tensor([1.0, 0.0]); "
        "print('filtered:', torchaudio.functional.lfilter(torch.ones(1, 4), one, one).tolist())"
    )
    proves = "filtered: [[1.0, 1.0, 1.0, 1.0]]"

    def notices(self, ctx: Context) -> list[str]:
        """What it needs to read files."""
        if Version(ctx.version) < Version("2.9"):
            return []
        return ["torchaudio.load and torchaudio.save need the package torchcodec, which is not installed by default"]
