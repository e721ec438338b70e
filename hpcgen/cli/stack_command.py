"""``hpcgen stack``: what the author of a stack recipe does with it."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH
from hpcgen.cli.new_files import check_name, write_or_print

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
def command() -> None:
    """Write stack recipes."""


@command.command("new")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=PATH,
    help="Write the recipe here instead of to stdout; an existing file is never replaced.",
)
def new(name: str, output: Path | None) -> None:
    """Write a new stack recipe to go on with."""
    check_name(name, "stack")
    write_or_print(_TEXT.format(name=name), output, name, "stack")
