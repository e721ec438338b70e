"""cuDNN, NVIDIA's library for deep neural networks."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from hpcgen.block import Block, Context, need
from hpcgen.promises import Licence, Promises
from hpcgen.steps import Archive, Environment, Input, Packages, Run, Runtime, Test, command, run

LICENCE = Licence(
    "nvidia-cudnn",
    "NVIDIA's Software License Agreement for cuDNN",
    "https://docs.nvidia.com/deeplearning/cudnn/latest/reference/eula.html",
)


class Cudnn(Block):
    """NVIDIA cuDNN, in the build for the chosen CUDA.  Source: https://developer.nvidia.com/cudnn

    One version has an archive for each CUDA it supports, all of them other files; the one for the chosen
    CUDA and the node's architecture is taken. A program built for cuDNN 8 does not run with 9.
    """

    name = "cudnn"
    needs = (need("cuda"),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The archive for the chosen CUDA."""
        return [_archive(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """zlib, which cuDNN 8.9 and later load."""
        return Packages(run={"apt": ["zlib1g"], "dnf": ["zlib"]})

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts and the loader."""
        return Environment(
            both={"CUDNN_INSTALL_PATH": ctx.prefix},
            paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Unpack headers and libraries; older archives call their folder lib64."""
        prefix = ctx.prefix
        yield run("unpack cudnn", ctx.unpack(_archive(ctx), prefix))
        if not _has_lib(ctx):
            yield run("lib of cudnn", command("mv", f"{prefix}/lib64", f"{prefix}/lib"))
        yield run(
            "lib64 of cudnn",
            command("ln", "-s", "lib", f"{prefix}/lib64"),
            # The static libraries are twice the size of the shared ones, and nothing here links them.
            f"rm -f {prefix}/lib/*.a",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The libraries."""
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        """The library is there."""
        major = ctx.version.split(".")[0]
        return [Test("library", f"ls {ctx.prefix}/lib", expect=f"libcudnn.so.{major}")]

    def promises(self, ctx: Context) -> Promises:
        """NVIDIA's licence, which installing it accepts."""
        return Promises(licences=(LICENCE,))

    def notices(self, ctx: Context) -> list[str]:
        """That the build accepts NVIDIA's licence."""
        return [f"The build accepts the NVIDIA cuDNN Software License Agreement for cuDNN {ctx.version}."]


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
