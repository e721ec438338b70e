"""The library with which UCX copies small messages from and to the memory of NVIDIA's GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, complete, run
from hpcgen.core.model.image_paths import SCRATCH


class Gdrcopy(Block):
    """libgdrapi, for nodes with NVIDIA's kernel module gdrdrv.  Source: https://github.com/NVIDIA/gdrcopy

    Only the library from the archive, compiled without CUDA; the host provides the module.
    """

    name = "gdrcopy"
    needs = (need("gnu", build_only=True),)

    def packages(self, ctx: Context) -> Packages:
        """What compiles it."""
        return Packages(build={"apt": ["make"], "dnf": ["make"], "zypper": ["make"]})

    def environment(self, ctx: Context) -> Environment:
        """The library."""
        return Environment(paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile and install the library and its headers."""
        source = f"{SCRATCH}/gdrcopy"
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        # Its makefile is not made for several jobs at once: it takes a second.
        yield run("compile and install", command("make", "-C", source, "lib_install", f"prefix={ctx.prefix}"))
        yield run("remove the source", command("rm", "-rf", source), joins="previous")

    def runtime(self, ctx: Context) -> Runtime:
        """The library and its headers."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)

    def test(self, ctx: Context) -> list[Test]:
        """The library is there with all that it needs; on a node with the module, it may be opened."""
        library = f"{ctx.prefix}/lib/libgdrapi.so.2"
        missing = complete(library)
        return [Test("library", missing), Test("device", "test -w /dev/gdrdrv", device="/dev/gdrdrv")]
