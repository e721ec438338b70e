"""How recipes are laid out for readers: long commands wrapped, files grouped by where they go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from posixpath import basename, dirname

from hpcgen.blocks.steps import Run, TextFile
from hpcgen.support.traced import Subject

FILES = "files"
"""Folder of the kit with the files that steps copy."""
WIDTH = 112
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")


def wrapped(command: str, indent: str = " " * 8) -> str:
    """A shell command over several lines, each but the last with a backslash at its end, none broken inside quotes."""
    if len(command) <= WIDTH:
        return command
    lines, line = [], ""
    for word in _WORD.findall(command):
        if line and len(line) + 1 + len(word) > WIDTH - len(indent):
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return f" \\\n{indent}".join([*lines, line])


def of_step(label: str, step: Run) -> Subject:
    """What the lines of a step are of."""
    return Subject("step", f"{label}: {step.about}")


def grouped(steps: Iterable[tuple[str, Run]]) -> list[tuple[str, str, list[Run]]]:
    """Steps of one block that follow each other: the block's label, a comment that covers them, the steps."""
    result = []
    for label, group in groupby(steps, key=lambda step: step[0]):
        runs = [run for _, run in group]
        about = f"{label}: {', '.join(run.about for run in runs)}"
        result.append((label, about if len(about) <= WIDTH else label, runs))
    return result


def copies(files: Iterable[TextFile]) -> list[str]:
    """``COPY`` instructions that bring files of the build context to their places."""

    def place(file: TextFile) -> str:
        same = basename(file.path) == basename(file.target)
        return dirname(file.target).rstrip("/") + "/" if same else file.target

    return [f"COPY {' '.join(file.path for file in group)} {target}" for target, group in groupby(files, key=place)]
