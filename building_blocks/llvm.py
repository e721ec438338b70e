"""The distribution's LLVM with clang."""

from __future__ import annotations

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Packages


class Llvm(Block):
    """LLVM and clang from the distribution's packages, in the builder only.  Source: https://llvm.org

    For software that is compiled with clang or linked with LLVM's static libraries. ``CC`` and ``CXX`` still name GCC,
    and clang uses GCC's C++ library too. A block that needs clang calls /usr/lib/llvm-N/bin/clang; ``LLVM_HOME`` is
    /usr/lib/llvm-N. TensorFlow's and JAX' build scripts read ``CLANG_COMPILER_PATH``.
    """

    name = "llvm"
    build_only = True
    needs = (need("gnu", build_only=True),)

    def packages(self, ctx: Context) -> Packages:
        major = major_version(ctx.version)
        return Packages(build={"apt": [f"clang-{major}", f"llvm-{major}-dev"]})

    def environment(self, ctx: Context) -> Environment:
        home = f"/usr/lib/llvm-{major_version(ctx.version)}"
        return Environment(build={"LLVM_HOME": home, "CLANG_COMPILER_PATH": f"{home}/bin/clang"})


def major_version(version: str) -> str:
    """What the packages of a release have in their names."""
    return version.split(".")[0]
