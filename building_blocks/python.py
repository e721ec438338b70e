"""The distribution's Python, and the one environment that everything in Python is installed into."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, Wheels, command, run


class Python(Block):
    """CPython of the distribution with one virtual environment, /opt/python.  Source: https://www.python.org

    The environment's pip is brought up to date first: the one of Ubuntu 18.04 (9.0.1) installs only the
    oldest kind of binary wheels. The interpreter itself stays the distribution's, in both stages.
    """

    name = "python"

    def inputs(self, ctx: Context) -> list[Input]:
        """pip, setuptools and wheel."""
        return [_pip_list(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The interpreter; headers and the venv module for the builder alone."""
        values = ctx.release.values
        manager = str(ctx.base.release.values["package_manager"])
        return Packages(build={manager: list(values["build"])}, run={manager: list(values["run"])})

    def environment(self, ctx: Context) -> Environment:
        """The environment's programs come first; packages in a home directory shown in the container do not."""
        return Environment(both={"PYTHONNOUSERSITE": "1"}, paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        interpreter = str(ctx.release.values["interpreter"])
        environment = command(interpreter, "-m", "venv", ctx.prefix)
        yield run("environment and pip", environment, ctx.pip(_pip_list(ctx), into=ctx.prefix), caches=("pip",))

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """The interpreter is the one that was asked for, and its compiled modules load."""
        python = f"{ctx.prefix}/bin/python"
        minor = ".".join(ctx.version.split(".")[:2])
        modules = "import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib"
        return [
            Test("version", command(python, "--version"), expect=f"Python {minor}."),
            Test("standard library", command(python, "-c", modules)),
        ]


def _pip_list(ctx: Context) -> Wheels:
    tools = [f"{name}=={ctx.release.values[name]}" for name in ("pip", "setuptools", "wheel")]
    return ctx.wheels(f"pip-{ctx.release.values['pip']}", tools)
