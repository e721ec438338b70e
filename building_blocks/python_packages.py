"""Python packages of one's own, beside the ones that blocks bring."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Input, Run, Test, command, run

Pin = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[0-9][0-9A-Za-z.!+]*$(?!\n)",
        description="a package with its exact version",
        examples=["h5py==3.11.0"],
    ),
]


_CUDA_WHEELS = ("torch", "torchvision", "torchaudio", "jax-cuda12-plugin", "jax-cuda13-plugin", "onnxruntime-gpu")
"""Packages whose wheels in the index are built for NVIDIA's CUDA, and carry it or require it.

Source: what their wheels of x86-64 require there (torch, onnxruntime-gpu, jax).
"""


def _vendor(name: str, version: str) -> str:
    """Whose GPUs a package of the index computes on; empty for one that computes on none as far as is known."""
    local = version.partition("+")[2]
    if local.startswith("rocm"):
        return "amd"
    if local.startswith("cpu"):
        return ""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return "nvidia" if plain in _CUDA_WHEELS or plain.startswith(("nvidia-", "cupy-cuda")) else ""


class PythonPackages(Block):
    """Packages of the Python package index in /opt/python, each with its exact version.

    They are installed without hashes, and pip adds what they depend on. The build fails if they do not fit
    what already exists (``pip check``).
    """

    name = "python_packages"
    needs = (need("python"),)

    class Options(BlockOptions, frozen=True):
        """``packages``: such as ``h5py==3.11.0``; ranges, addresses and pip's own options are refused."""

        packages: list[Pin] = []

    def inputs(self, ctx: Context) -> list[Input]:
        return [ctx.wheels(self.name, ctx.options.packages)] if ctx.options.packages else []

    def build(self, ctx: Context) -> Iterable[Run]:
        if ctx.options.packages:
            check = command(f"{ctx.use('python').prefix}/bin/python", "-m", "pip", "check")
            packages = ctx.wheels(self.name, ctx.options.packages)
            yield run("Python packages", ctx.pip(packages), check, caches=("pip",))

    def test(self, ctx: Context) -> list[Test]:
        """Each is there in the version that was asked for."""
        python = f"{ctx.use('python').prefix}/bin/python"
        tests = []
        for pin in ctx.options.packages:
            name, version = pin.split("==")
            tests.append(Test(name, command(python, "-m", "pip", "show", name), expect=f"Version: {version}"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """The GPUs that the index's builds of well-known frameworks compute on."""
        vendors = dict.fromkeys(vendor for pin in ctx.options.packages if (vendor := _vendor(*pin.split("=="))))
        return Capabilities(gpu_vendors=tuple(vendors))

    def notices(self, ctx: Context) -> list[str]:
        """That nothing but the version is checked, and which packages have ended and what took their place."""
        if not ctx.options.packages:
            return []
        superseded = msgspec.convert(ctx.release.values.get("superseded", {}), dict[str, str])
        names = [re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in ctx.options.packages]
        ended = [f"{name} has ended: {superseded[name]}" for name in names if name in superseded]
        return ["python_packages: the listed packages are pinned by version, not by hash", *ended]
