"""Intel's compute runtime: Level Zero and OpenCL for Intel's GPUs."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Input, Packages, Test


class IntelGpu(Block):
    """Intel's compute runtime with Level Zero's and OpenCL's loaders.  Source: https://github.com/intel/compute-runtime

    From the distribution's packages; a version here is that of the runtime when the distribution was released. The host
    provides the kernel driver (i915 or xe) and decides who may open its render nodes.
    """

    name = "intel_gpu"
    gpu_vendor = "intel"

    def capabilities(self, ctx: Context) -> Capabilities:
        """Both loaders and what they load are on the loader's path."""
        return Capabilities(gpu_runtime="intel")

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing beside distribution packages."""
        return []

    def packages(self, ctx: Context) -> Packages:
        """The runtime, both loaders, and what lists OpenCL's devices."""
        return Packages(run={"apt": [*ctx.release.values["packages"], "clinfo"]})

    def test(self, ctx: Context) -> list[Test]:
        """Both loaders find the runtime; on a node with a GPU, the kernel driver answers."""
        return [
            Test("Level Zero", "ldconfig -p | grep -E 'libze_(loader|intel_gpu)[.]so'", expect="libze_intel_gpu.so.1"),
            Test("OpenCL", "cat /etc/OpenCL/vendors/*.icd", expect="libigdrcl.so"),
            Test("driver", "clinfo --list", device="gpu", expect="Intel"),
        ]
