"""Python packages of one's own, beside the ones that blocks bring."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.steps import Input, Run, Test, command, run

Pin = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[0-9][0-9A-Za-z.!+]*$(?!\n)",
        description="a package with its exact version, such as h5py==3.11.0",
    ),
]


class PythonPackages(Block):
    """Packages of the Python package index in /opt/python, each with its exact version.

    They are installed without hashes, and pip adds what they depend on. The build fails if they do not fit
    what already exists (``pip check``).
    """

    name = "python_packages"
    needs = (need("python"),)

    class Options(BlockOptions, frozen=True):
        """``packages``: such as ``h5py==3.11.0``; ranges, addresses and pip's own options are refused."""

        packages: list[Pin] = []

    def inputs(self, ctx: Context) -> list[Input]:
        return [ctx.wheels(self.name, ctx.options.packages)] if ctx.options.packages else []

    def build(self, ctx: Context) -> Iterable[Run]:
        if ctx.options.packages:
            check = command(f"{ctx.use('python').prefix}/bin/python", "-m", "pip", "check")
            packages = ctx.wheels(self.name, ctx.options.packages)
            yield run("Python packages", ctx.pip(packages), check, caches=("pip",))

    def test(self, ctx: Context) -> list[Test]:
        """Each is there in the version that was asked for."""
        python = f"{ctx.use('python').prefix}/bin/python"
        tests = []
        for pin in ctx.options.packages:
            name, version = pin.split("==")
            tests.append(Test(name, command(python, "-m", "pip", "show", name), expect=f"Version: {version}"))
        return tests

    def notices(self, ctx: Context) -> list[str]:
        """That nothing but the version is checked."""
        if not ctx.options.packages:
            return []
        return ["python_packages: the listed packages are pinned by version, not by hash"]
