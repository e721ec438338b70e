"""cuDNN, NVIDIA's library for deep neural networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from packaging.version import Version

from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.nvidia import CUDNN
from hpcgen.blocks.steps import Archive, Environment, Input, Packages, Run, Runtime, Test, Wheels, command, run

FOLDER = "/opt/python/lib/python3*/site-packages/nvidia/cudnn"
"""Where NVIDIA's wheel puts it; the shell finds Python's version."""


def _wants_wheels(situation: Situation) -> bool:
    return bool(situation.options.obtain == "wheels")


class Cudnn(Block):
    """NVIDIA cuDNN, in the build for the chosen CUDA.  Source: https://developer.nvidia.com/cudnn

    Each version has a separate archive for every CUDA that it supports; the one for the chosen CUDA and the node's
    architecture is used. A program built for cuDNN 8 does not run with 9.
    """

    name = "cudnn"
    gpu_vendor = "nvidia"
    needs = (need("cuda", enough={"obtain": "wheels"}), need("python", when=_wants_wheels))

    class Options(BlockOptions, frozen=True):
        """``obtain``: NVIDIA's ``archive`` with headers, or only the libraries as NVIDIA's ``wheels``.

        Wheels are the default if nothing needs more.
        """

        obtain: Literal["archive", "wheels"] = "archive"

    def inputs(self, ctx: Context) -> list[Input]:
        """The archive or the wheel for the chosen CUDA."""
        return [_wheels(ctx)] if _by_wheels(ctx) else [_archive(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """zlib, which cuDNN 8.9 and later load."""
        return Packages(run={"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]})

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts and the loader."""
        return Environment(
            both={} if _by_wheels(ctx) else {"CUDNN_INSTALL_PATH": ctx.prefix},
            paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Unpack headers and libraries; older archives call their folder lib64."""
        prefix = ctx.prefix
        if _by_wheels(ctx):
            yield run("cuDNN libraries", ctx.pip(_wheels(ctx)), caches=("pip",))
            yield run(
                "lib of cudnn",
                command("mkdir", "-p", f"{prefix}/lib"),
                f"ln -s {FOLDER}/lib/lib*.so.* {prefix}/lib/",
                joins="previous",
            )
            return
        yield run("unpack cudnn", ctx.unpack(_archive(ctx), prefix))
        if not _has_lib(ctx):
            yield run("lib of cudnn", command("mv", f"{prefix}/lib64", f"{prefix}/lib"), joins="previous")
        yield run(
            "lib64 of cudnn",
            command("ln", "-s", "lib", f"{prefix}/lib64"),
            # The static libraries are twice the size of the shared ones, and nothing here links them.
            f"rm -f {prefix}/lib/*.a",
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        major = ctx.version.split(".")[0]
        return [Test("library", f"ls -L {ctx.prefix}/lib", expect=f"libcudnn.so.{major}")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NVIDIA's licence, which installing it accepts."""
        return Capabilities(licences=(CUDNN,))

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts NVIDIA's licence."""
        return [f"The build accepts the NVIDIA cuDNN Software License Agreement for cuDNN {ctx.version}."]


def _by_wheels(ctx: Context) -> bool:
    return bool(ctx.options.obtain == "wheels")


def _wheels(ctx: Context) -> Wheels:
    """cuDNN's wheel, and the cuBLAS that it asks for in the version that the chosen CUDA brings."""
    cuda = ctx.use("cuda")
    package = f"nvidia-cudnn-cu{cuda.version.split('.')[0]}"
    pins = [each for each in cuda.release.values.get("wheels", []) if "cublas" in each or "nvrtc" in each]
    name = ctx.facts.listed(f"cudnn-{ctx.version}-cuda{cuda.version}")
    return ctx.wheels(name, [f"{package}=={ctx.version}", *pins])


def _has_lib(ctx: Context) -> bool:
    return ctx.me.at_least("8.3.1")


def _archive(ctx: Context) -> Archive:
    """The archive made for the newest CUDA of the same major that is not newer than the chosen one."""
    chosen = Version(ctx.use("cuda").version)
    ending = f"-{ctx.facts.architecture}"
    made_for = {
        Version(name.removeprefix("cuda").removesuffix(ending)): name
        for name in ctx.release.archives
        if name.endswith(ending)
    }
    same_major = sorted(version for version in made_for if version.major == chosen.major)
    not_newer = [version for version in same_major if version <= chosen]
    best = not_newer[-1] if not_newer else same_major[0]
    return ctx.archive(made_for[best])
