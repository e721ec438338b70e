"""MIGraphX, AMD's library that compiles trained models for its GPUs."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Input, Packages, Test


class Migraphx(Block):
    """AMD MIGraphX, from AMD's packages.  Source: https://github.com/ROCm/AMDMIGraphX

    Its version here is that of its ROCm, as in AMD's repository. The package also installs MIOpen and rocBLAS.
    """

    name = "migraphx"
    gpu_vendor = "amd"
    needs = (need("rocm"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing beside distribution packages."""
        return []

    def packages(self, ctx: Context) -> Packages:
        """AMD's package, from the repository that the image of ROCm names."""
        return Packages(run={"apt": ["migraphx"]})

    def test(self, ctx: Context) -> list[Test]:
        """The library that ONNX Runtime loads is there with all that it is linked with."""
        folder = f"{ctx.use('rocm').prefix}/lib"
        return [Test("library", f"ldd {folder}/libmigraphx_c.so.3", expect="libmigraphx.so")]
