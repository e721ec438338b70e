"""New files for people to go on with; none that exists is replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from hpcgen.cli.common import say
from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.support.quoting import NAME_PATTERN
from hpcgen.core.support.writing import write_file


def check_name(name: str, kind: str) -> None:
    """InputError where nothing of that kind can be called so."""
    if not re.search(NAME_PATTERN, name):
        expected = "lower-case letters, digits, '.', '_' and '-', starting with a letter or digit"
        raise InputError(f"{name!r} cannot be a {kind}'s name", "NAME", expected)


def check_absent(path: Path) -> None:
    """OutputError where there is such a file."""
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path} already exists", remedy="name another file, or remove this one")


def write_or_print(text: str, output: Path | None, name: str, kind: str) -> None:
    """Write what hpcgen finds by its file's name, with a note where that is another; on stdout without a file."""
    if output is None:
        click.echo(text, nl=False)
        return
    write_new({output: text})
    if output.stem != name:
        say(f"note: hpcgen finds a {kind} by its file's name; {output.name} should be called {name}.yaml")


def write_new(files: Mapping[Path, str]) -> None:
    """Write all of them, or OutputError and none where one exists."""
    for path in files:
        check_absent(path)
    for path, text in files.items():
        write_file(path, text, folders=True)
        say(f"{path}: written")
