"""CMake for the builder."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Input, Run, Wheels, run


class Cmake(Block):
    """CMake from its binary wheel, in the builder only.  Source: https://cmake.org

    Not the distribution's: Ubuntu 18.04 has 3.10, and CMake 4 rejects the older projects in these stacks.
    """

    name = "cmake"
    needs = (need("python", build_only=True),)
    build_only = True

    def inputs(self, ctx: Context) -> list[Input]:
        return [_wheel(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """The program itself, not the Python script that starts it, so that it works without /opt/python."""
        return Environment(build_paths={"PATH": [f"{ctx.prefix}/cmake/data/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Unpack the wheel into its own folder."""
        yield run("install", ctx.pip(_wheel(ctx), target=ctx.prefix), caches=("pip",))


def _wheel(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"cmake-{ctx.version}"), [f"cmake=={ctx.version}"])
