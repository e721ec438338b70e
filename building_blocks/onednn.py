"""oneDNN, formerly MKL-DNN."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.base import Context, need
from hpcgen.blocks.cmake_library import CMakeLibraryBlock
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Packages


class Onednn(CMakeLibraryBlock):
    """oneDNN (MKL-DNN) from source for the partition's CPU.  Source: https://github.com/oneapi-src/oneDNN

    For programs that link it themselves. TensorFlow does not use it: it builds its own bundled copy (see the tensorflow
    block's ``mkl``).
    """

    name = "onednn"
    needs = (need("gnu"), need("cmake", ">=3.13,<4", build_only=True))
    library = "libdnnl.so"
    needs_library = "libgomp.so.1"

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libgomp", "libstdc++"))

    def settings(self, ctx: Context) -> Mapping[str, str]:
        return {
            "DNNL_BUILD_EXAMPLES": "OFF",
            "DNNL_BUILD_TESTS": "OFF",
            "DNNL_CPU_RUNTIME": "OMP",
            # Kernels are chosen by the CPU at run time whatever this is; it is for the rest of the code.
            "DNNL_ARCH_OPT_FLAGS": " ".join(ctx.flags),
        }
