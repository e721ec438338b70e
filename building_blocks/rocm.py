"""ROCm, AMD's run time and compiler for its GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.caches import of_gpus
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.declared import Facts, SiteRange
from hpcgen.blocks.steps import Environment, Image, Input, Run, Test, command, image, run
from hpcgen.core.errors import ConflictError


class Rocm(Block):
    """AMD ROCm: HIP, its compiler and its run time, as AMD's image.  Source: https://rocm.docs.amd.com

    Both stages start from AMD's image, which has ROCm in ``/opt/rocm`` and AMD's package repository of the same version
    with its key, so that blocks such as ``migraphx`` can install AMD's packages. The host provides the kernel driver.
    """

    name = "rocm"
    gpu_vendor = "amd"

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """What the host's MPI for GPUs is linked with."""
        return facts.runtime_ranges("amd")

    def capabilities(self, ctx: Context) -> Capabilities:
        """HIP's run-time library is on the loader's path."""
        return Capabilities(gpu_runtime="amd", caches=of_gpus(["amd"]))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing beside the image; the stages name that."""
        return []

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """AMD's image for the chosen Ubuntu, in both stages."""
        name = f"{ctx.base.name}{ctx.base.version}"
        if name not in ctx.release.images:
            raise ConflictError(
                f"rocm {ctx.version} has no image on {ctx.base.name} {ctx.base.version}",
                expected=f"one of {', '.join(sorted(ctx.release.images))}",
                remedy="set the base's version, or choose another version of rocm",
            )
        return image(ctx.release.images[name])

    def prepare(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Without AMD's repository of kernel drivers, which an image has no use for."""
        yield run("no kernel drivers", command("rm", "-f", "/etc/apt/sources.list.d/amdgpu.list"), joins="next")

    def environment(self, ctx: Context) -> Environment:
        """Where it is, for build scripts and the loader."""
        return Environment(
            both={"ROCM_PATH": ctx.prefix},
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
        )

    def test(self, ctx: Context) -> list[Test]:
        """The run time is there in its version; on a node with a GPU, the driver answers."""
        # From 7.14 on it is below a folder with the release's number, which ``core`` stands for.
        core = f"{ctx.prefix}/core" if ctx.me.at_least("7.14") else ctx.prefix
        target = ctx.facts.partition.gpu.target if ctx.facts.partition.gpu is not None else None
        return [
            Test("version", f"cat {core}/.info/version", expect=ctx.version),
            Test("HIP", f"ls -L {ctx.prefix}/lib/", expect="libamdhip64.so"),
            Test("driver", f"{ctx.prefix}/bin/rocminfo", device="gpu", expect=target or "gfx"),
        ]

    def details(self, ctx: Context) -> list[str]:
        return [f"ROCm {ctx.version} comes as AMD's image, with packages of AMD's repository signed by AMD's key."]
