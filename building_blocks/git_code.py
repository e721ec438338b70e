"""Files of git repositories, as a stack's ``git`` names them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from hpcgen.blocks.base import Block, BlockOptions, Context
from hpcgen.blocks.steps import GitTree, Input, Packages, Run, Runtime, command, run
from hpcgen.core.model.fields import matching
from hpcgen.core.model.image_paths import COPY_TARGET

Entry = Annotated[
    str,
    matching(
        rf"^https://[A-Za-z0-9._~+/:-]+ [0-9a-f]{{40}} {COPY_TARGET}$(?!\n)",
        "the address, the commit and the place in the image, with a space between them",
        "https://example.org/group/solver.git 0123456789abcdef0123456789abcdef01234567 /opt/code",
    ),
]


class GitCode(Block):
    """What a stack's ``git`` puts into the image: files of repositories at fixed commits, without submodules."""

    name = "git_code"
    of_project = True

    class Options(BlockOptions, frozen=True):
        """``trees``: address, commit and place of each, as the stack's ``git`` has them."""

        trees: list[Entry] = []

    def inputs(self, ctx: Context) -> list[Input]:
        return [tree for tree, _ in _trees(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """What fetches them."""
        tools = ["git"] if ctx.options.trees else []
        return Packages(build={"apt": tools, "dnf": tools, "zypper": tools})

    def build(self, ctx: Context) -> Iterable[Run]:
        for tree, target in _trees(ctx):
            above = target.rpartition("/")[0]
            make = [command("mkdir", "-p", above)] if above else []
            name = re.sub(r"\.git$", "", tree.url.rpartition("/")[2])
            yield run(name, make, ctx.tree(tree, target), command("rm", "-rf", f"{target}/.git"))

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=tuple(target for _, target in _trees(ctx)))


def _trees(ctx: Context) -> list[tuple[GitTree, str]]:
    words = [entry.split(" ") for entry in ctx.options.trees]
    return [(GitTree(url, commit), target) for url, commit, target in words]
