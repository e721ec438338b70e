"""TensorRT, NVIDIA's library that compiles trained models for its GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.capabilities import Capabilities, Licence
from hpcgen.blocks.steps import Archive, Environment, Input, Run, Runtime, Test, command, run
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH

LICENCE = Licence(
    "nvidia-tensorrt",
    "NVIDIA's Software License Agreement for TensorRT",
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/sla.html",
)


class Tensorrt(Block):
    """NVIDIA TensorRT, in the build for the chosen CUDA.  Source: https://developer.nvidia.com/tensorrt

    From NVIDIA's archive, because the packages in the Python package index are empty: they fetch the libraries from
    NVIDIA while they are installed, and no hash checks them. Headers and shared libraries are kept, the rest of the
    archive (samples, static libraries, tools) is not unpacked.
    """

    name = "tensorrt"
    gpu_vendor = "nvidia"
    needs = (need("cuda", enough={"obtain": "wheels"}),)

    def inputs(self, ctx: Context) -> list[Input]:
        """The archive for the chosen CUDA."""
        return [_archive(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts and the loader."""
        return Environment(build={"TENSORRT_HOME": ctx.prefix}, paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Unpack headers and shared libraries, wherever below its top folder the archive has them."""
        archive, source = _archive(ctx), f"{SCRATCH}/tensorrt"
        unpack = ["tar", "-xf", ctx.local(archive), "-C", source, "--strip-components=1", "--no-same-owner"]
        yield run(
            "unpack tensorrt",
            ctx.fetch(archive),
            command("mkdir", "-p", source),
            command(*unpack, "--exclude=*.a", "--wildcards", "*/include", "*/lib"),
            command("rm", "-f", ctx.local(archive)),
        )
        yield run(
            "install tensorrt",
            command("mkdir", "-p", f"{ctx.prefix}/include", f"{ctx.prefix}/lib"),
            # "lib" is a folder in some archives and a link to one in others.
            command("cp", "-a", f"{source}/include/.", f"{ctx.prefix}/include/"),
            command("cp", "-a", f"{source}/lib/.", f"{ctx.prefix}/lib/"),
            command("rm", "-rf", source, f"{ctx.prefix}/lib/stubs"),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        """The library loads, together with the CUDA that it requires."""
        library = f"{ctx.prefix}/lib/libnvinfer.so.{ctx.version.split('.')[0]}"
        return [Test("library", f"ldd {library}", expect="libc.so.6"), Test("file", f"ls -L {library}", expect=library)]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NVIDIA's licence, which installing it accepts."""
        return Capabilities(licences=(LICENCE,))

    def notices(self, ctx: Context) -> list[str]:
        """How much it fetches."""
        return [f"The archive of TensorRT {ctx.version} is several GB; the image keeps its shared libraries."]

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts NVIDIA's licence."""
        return [f"The build accepts the NVIDIA Software License Agreement for TensorRT {ctx.version}."]


def _archive(ctx: Context) -> Archive:
    name = f"cuda{ctx.use('cuda').version.split('.')[0]}-{ctx.facts.architecture}"
    if name not in ctx.release.archives:
        known = ", ".join(sorted(ctx.release.archives))
        raise ConflictError(
            f"tensorrt {ctx.version} has no archive for CUDA {ctx.use('cuda').version} on {ctx.facts.architecture}",
            expected=f"one of {known}",
            remedy="choose another version of tensorrt or cuda, or add the archive to a table of your own",
        )
    return ctx.archive(name)
