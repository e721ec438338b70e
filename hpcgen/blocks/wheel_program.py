"""Software that a project ships as wheels, beside a program that proves it: the steps its blocks have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from hpcgen.blocks.base import Block, Context, Need, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.steps import Input, Packages, Run, Runtime, TextFile, Wheels, lines, run


class WheelBlock(Block):
    """Base of blocks that install wheels, and put programs that stacks run as a test into /opt/NAME/share.

    A subclass says the :meth:`wheels` and the :meth:`programs`, and overrides what it does in another way.

    ``libraries``: GCC's run-time libraries that the wheels do not bring; ``proof``: what the programs do.
    """

    needs: ClassVar[tuple[Need, ...]] = (need("python"),)
    libraries: ClassVar[tuple[str, ...]] = ("libstdc++",)
    proof: ClassVar[str] = "training step"

    def wheels(self, ctx: Context) -> Wheels:
        """The wheels of the software and of all that it needs."""
        raise NotImplementedError

    def programs(self, ctx: Context) -> Sequence[TextFile]:
        """The programs, and the files beside them that tell them what the block was set to."""
        raise NotImplementedError

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels."""
        return [self.wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The libraries that the wheels are linked with."""
        return Packages(run=gcc_libraries(*self.libraries))

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install the wheels, and write the programs."""
        yield run("install", ctx.pip(self.wheels(ctx)), caches=("pip",))
        yield run(self.proof, *self.programs(ctx))

    def runtime(self, ctx: Context) -> Runtime:
        """The programs; the software itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))


def share_program(ctx: Context, source: str, name: str = "") -> TextFile:
    """A program of the collection's ``files``, in the block's share folder.

    ``name``: what it is called there; as in ``files`` if empty.
    """
    return TextFile(f"files/tests/{source}", f"{ctx.prefix}/share/{name or source}", ctx.text_file(source))


def share_setting(ctx: Context, name: str, word: str) -> TextFile:
    """A file beside the programs with a word that they are to know."""
    return TextFile(f"files/tests/{ctx.me.name}_{name}", f"{ctx.prefix}/share/{name}", lines(word))
