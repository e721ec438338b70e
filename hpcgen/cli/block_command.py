"""``hpcgen block`` and ``hpcgen stack``: what the author of a building block or a stack recipe does with it."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import click

from hpcgen.cli.common import NEW_FILE, PATH, say
from hpcgen.cli.new_files import check_name, write_new, write_or_print

_CLASS = '''\
"""{name}: say in a line what it is."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Packages, Run, Runtime, Test, command, run


class {title}(Block):
    """Say what {name} is.  Source: https://example.org/{name}"""

    name = "{name}"
    needs = (need("gnu", build_only=True),)

    def packages(self, ctx: Context) -> Packages:
        """What it is built with."""
        return Packages(build={{"apt": ["make"], "dnf": ["make"]}})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it below its prefix."""
        # With an archive in the release table, unpack it:
        # yield run("source", ctx.unpack(ctx.archive(), f"{{SCRATCH}}/{name}"))  # hpcgen.core.model.image_paths.SCRATCH
        yield run("install", command("mkdir", "-p", f"{{ctx.prefix}}/bin"))

    def runtime(self, ctx: Context) -> Runtime:
        """What the final image keeps."""
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It is there; better is a program that prints its version."""
        return [Test("installed", command("test", "-d", f"{{ctx.prefix}}/bin"))]
'''
_TABLE = """\
# `hpcgen schema releases` has every field. Write no version, hash or range that you have not seen somewhere.
block: {name}
source:
  from: nowhere yet; name the page or file that the versions and hashes are from
  checked: {today}
  verified: no
releases:
  "1.0": {{}}
  # "1.0":
  #   archives: {{source: {{url: https://example.org/{name}-1.0.tar.gz, sha256: of the file}}}}
"""


@click.group("block")
def command() -> None:
    """Write building blocks."""


@command.command("new")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=PATH,
    default=Path(),
    help="The collection that gets the block; by default the current folder. No file that exists is replaced.",
)
def new(name: str, output: Path) -> None:
    """Write a new block to go on with: its class and its release table, in building_blocks/ of a collection."""
    check_name(name, "block")
    words = re.findall("[a-z0-9]+", name)
    title = "".join(word.capitalize() for word in words)
    folder = output / "building_blocks"
    write_new(
        {
            folder / f"{name}.py": _CLASS.format(name=name, title=title if title[0].isalpha() else f"Block{title}"),
            folder / f"{name}.yaml": _TABLE.format(name=name, today=datetime.date.today().isoformat()),
        }
    )
    say(f"next: hpcgen check {folder / name}.py")


_TEXT = """\
# A stack recipe to go on with: `hpcgen list blocks` names the blocks, `hpcgen show block NAME` their options and
# versions, `hpcgen schema stack` every field. The newest versions that fit are chosen, of the first block first.
name: {name}
title: Say for people what this software is
blocks:
  python: {{}}
  mpi: {{}}
  # python_packages: {{options: {{packages: ["h5py==3.11.0"]}}}}
  # cmake: {{version: ">=3.20"}}
run:
  command: [python3, program.py]
  # mpi: false              # it is not started by an MPI launcher
  # memory_per_rank_gb: 4
"""


@click.group("stack")
def stack() -> None:
    """Write stack recipes."""


@stack.command("new")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=NEW_FILE,
    help="Write the recipe here instead of to stdout; an existing file is never replaced.",
)
def new_stack(name: str, output: Path | None) -> None:
    """Write a new stack recipe to go on with."""
    check_name(name, "stack")
    write_or_print(_TEXT.format(name=name), output, name, "stack")
