"""``hpcgen block`` and ``hpcgen stack``: what the author of a building block or a stack recipe does with it."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import click

from hpcgen.cli.common import NEW_FILE, PATH, say
from hpcgen.cli.new_files import check_name, write_new, write_or_print
from hpcgen.core.support.templates import Template

_NEW = Template(Path(__file__).with_name("templates") / "new.txt")


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
            folder / f"{name}.py": _NEW.fill(
                "class", name=name, title=title if title[0].isalpha() else f"Block{title}"
            ),
            folder / f"{name}.yaml": _NEW.fill("releases", name=name, today=datetime.date.today().isoformat()),
        }
    )
    say(f"next: hpcgen check {folder / name}.py")


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
    write_or_print(_NEW.fill("stack", name=name), output, name, "stack")
