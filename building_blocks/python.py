"""Python, and the one environment for all Python packages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.blocks.base import Block, BlockOptions, Context
from hpcgen.blocks.steps import (
    Archive,
    Environment,
    Input,
    Packages,
    Part,
    Run,
    Runtime,
    Test,
    TextFile,
    Wheels,
    command,
    run,
)


class Python(Block):
    """CPython with one environment for all packages, /opt/python.  Source: https://www.python.org

    The environment's pip is updated first: Ubuntu 18.04's (9.0.1) installs only the oldest kind of binary wheels. The
    distribution's interpreter stays where it is, in both stages.
    """

    name = "python"
    companions = ("pip", "setuptools", "wheel")

    class Options(BlockOptions, frozen=True):
        """Where the interpreter comes from.

        ``obtain``: ``package`` is the distribution's, with a virtual environment; ``standalone`` a
        self-contained build, for versions that the distribution lacks:
        https://github.com/astral-sh/python-build-standalone; ``image`` the Python of the image that the stack starts
        from, with its packages visible in the environment.
        """

        obtain: Literal["package", "standalone", "image"] = "package"

    def inputs(self, ctx: Context) -> list[Input]:
        """pip, setuptools and wheel; the build that brings all that it needs."""
        return [*([_standalone(ctx)] if ctx.options.obtain == "standalone" else []), _pip_list(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The interpreter; headers and the venv module for the builder alone."""
        if ctx.options.obtain == "standalone":
            return Packages()
        if ctx.options.obtain == "image":
            return Packages(build=_WITH_IT)
        values = ctx.release.values
        manager = str(ctx.base.release.values["package_manager"])
        return Packages(build={manager: list(values["build"])}, run={manager: list(values["run"])})

    def environment(self, ctx: Context) -> Environment:
        """The environment's programs come first; packages in a home directory shown in the container do not."""
        return Environment(both={"PYTHONNOUSERSITE": "1"}, paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        if ctx.options.obtain == "standalone":
            yield run("CPython", ctx.unpack(_standalone(ctx), ctx.prefix))
            minor = ".".join(ctx.version.split(".")[:2])
            environment = command("ln", "-sf", f"python{minor}", f"{ctx.prefix}/bin/python")
        elif ctx.options.obtain == "image":
            yield run("environment over the image's Python", *_over_image(ctx), caches=("pip",), joins="next")
            return
        else:
            environment = command(str(ctx.release.values["interpreter"]), "-m", "venv", ctx.prefix)
        yield run(
            "environment and pip", environment, ctx.pip(_pip_list(ctx), into=ctx.prefix), caches=("pip",), joins="next"
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Programs of the image that name their Python by its path find the added packages too."""
        if ctx.options.obtain == "image" and stage == "final":
            shown = command(f"{ctx.prefix}/bin/python", _PROGRAM, "shown", ctx.prefix)
            yield run("the image's Python sees the environment", _program(ctx), shown, joins="previous")

    def suits_pip(self, ctx: Context) -> bool:
        """What the makers of an image had together is theirs to answer for."""
        return bool(ctx.options.obtain != "image")

    def test(self, ctx: Context) -> list[Test]:
        """The interpreter is the one that was asked for, and its compiled modules load."""
        python = f"{ctx.prefix}/bin/python"
        minor = ".".join(ctx.version.split(".")[:2])
        modules = "import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib"
        return [
            Test("version", command(python, "--version"), expect=f"Python {minor}."),
            Test("standard library", command(python, "-c", modules)),
        ]


_WITH_IT = {"apt": ["python3-dev", "python3-venv"], "dnf": ["python3-devel"], "zypper": ["python3-devel"]}
"""What the distribution's own Python may lack for environments and for modules in C, if it is that of the image."""


def _over_image(ctx: Context) -> list[Part]:
    """An environment of the image's Python that sees its packages, holds pip to their versions and has a pip."""
    # In one command: once the environment is there, its python3 is the first on PATH.
    seen = command("python3", _PROGRAM, "seen", ctx.prefix)
    return [_program(ctx), seen, *ctx.pip(_pip_list(ctx), into=ctx.prefix)]


_PROGRAM = "/opt/hpcgen/image_python.py"


def _program(ctx: Context) -> TextFile:
    return TextFile("files/image_python.py", _PROGRAM, ctx.text_file("image_python.py"))


def _standalone(ctx: Context) -> Archive:
    return ctx.archive(ctx.facts.architecture)


def _pip_list(ctx: Context) -> Wheels:
    tools = [f"{name}=={ctx.release.values[name]}" for name in ("pip", "setuptools", "wheel")]
    # Any of them will do; see the table on setuptools.
    return ctx.wheels(f"pip-{ctx.release.values['pip']}", tools, asks=["pip", "setuptools<81", "wheel"])
