"""oneDNN, formerly MKL-DNN."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH


class Onednn(Block):
    """oneDNN (MKL-DNN) from source for the partition's CPU.  Source: https://github.com/oneapi-src/oneDNN

    For programs that link it themselves. TensorFlow does not use it: it bundles and builds a copy of its own
    (see the tensorflow block's ``mkl``).
    """

    name = "onednn"
    needs = (need("gnu"), need("cmake", ">=3.13,<4", build_only=True))

    def packages(self, ctx: Context) -> Packages:
        return Packages(run=gcc_libraries("libgomp", "libstdc++"))

    def environment(self, ctx: Context) -> Environment:
        """Found by CMake while building, and by the loader."""
        return Environment(
            paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]}, build_paths={"CMAKE_PREFIX_PATH": [ctx.prefix]}
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        source, folder = f"{SCRATCH}/onednn", f"{SCRATCH}/onednn-build"
        settings = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_INSTALL_PREFIX": ctx.prefix,
            "CMAKE_INSTALL_LIBDIR": "lib",
            "DNNL_BUILD_EXAMPLES": "OFF",
            "DNNL_BUILD_TESTS": "OFF",
            "DNNL_CPU_RUNTIME": "OMP",
            # Kernels are chosen by the CPU at run time whatever this is; it is for the rest of the code.
            "DNNL_ARCH_OPT_FLAGS": " ".join(ctx.flags),
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cmake", "-S", source, "-B", folder, *words),
            command("cmake", "--build", folder, "--parallel"),
        )
        yield run(
            "install",
            command("cmake", "--build", folder, "--target", "install"),
            command("rm", "-rf", source, folder),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The library and its headers."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """Every library that it needs is found."""
        return [Test("library", command("ldd", f"{ctx.prefix}/lib/libdnnl.so"), expect="libgomp.so.1")]
