"""Where CUDA's toolkit lies in an image, however it got there."""

from __future__ import annotations

from hpcgen.blocks.context import Chosen, Context

_TARGET = {"x86_64": "x86_64-linux", "aarch64": "sbsa-linux"}


def target_of(ctx: Context) -> str:
    """NVIDIA's name for the node's architecture."""
    return _TARGET[ctx.facts.architecture]


def image_key(base: Chosen, stage: str) -> str:
    """The image of a release for a base: NVIDIA's ``devel`` for the builder and its ``runtime`` for the final stage."""
    return f"{'devel' if stage == 'builder' else 'runtime'}-{base.name}{base.version}"


def is_of_image(cuda: Chosen, base: Chosen) -> bool:
    """Whether both stages start from NVIDIA's images."""
    if cuda.options.obtain == "auto":
        return image_key(base, "builder") in cuda.release.images
    return bool(cuda.options.obtain == "image")


def minor(cuda: Chosen) -> str:
    """Such as 12.9."""
    return ".".join(cuda.version.split(".")[:2])


def toolkit_folder(cuda: Chosen, base: Chosen) -> str:
    """The folder itself, which links stand for in NVIDIA's images."""
    return f"/usr/local/cuda-{minor(cuda)}" if is_of_image(cuda, base) else cuda.prefix
