"""How recipes are laid out for readers: long commands wrapped, files grouped by where they go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from posixpath import basename, dirname

import msgspec

from hpcgen.backends.engines.steps import HPCGEN
from hpcgen.blocks.steps import Run, TextFile
from hpcgen.core.support.traced import Subject

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
    """The subject of the lines of a step."""
    return Subject("step", f"{label}: {step.about}")


def grouped(steps: Iterable[tuple[str, Run]]) -> list[tuple[str, str, list[Run]]]:
    """Steps of one block that follow each other: the block's label, a comment that covers them, the steps."""
    result = []
    for label, group in groupby(steps, key=lambda step: step[0]):
        runs = [run for _, run in group]
        about = f"{label}: {', '.join(run.about for run in runs)}"
        result.append((label, about if len(about) <= WIDTH else label, runs))
    return result


class RunLayer(msgspec.Struct, frozen=True):
    """Steps of a stage, with the blocks they are of, that one ``RUN`` does."""

    steps: list[tuple[str, Run]]

    @property
    def labels(self) -> list[str]:
        """The blocks, in their order."""
        return list(dict.fromkeys(label for label, _ in self.steps))

    @property
    def label(self) -> str:
        """The block whose step takes the time."""
        order = ("", "next", "previous")
        return min(self.steps, key=lambda each: (not each[1].commands, order.index(each[1].joins)))[0]

    @property
    def about(self) -> str:
        """All that it does: first for that block, then for the others, without hpcgen's own cleaning up."""
        told = {label: ", ".join(step.about for of, step in self.steps if of == label) for label in self.labels}
        own = told.pop(self.label)
        told.pop(HPCGEN, None)
        return "; ".join([own, *(f"{label}: {about}" for label, about in told.items())])


def layers(steps: Iterable[tuple[str, Run]]) -> list[RunLayer]:
    """The steps, those together that say so; where only files come, they come with those of the step after them."""
    result: list[RunLayer] = []
    goes_on = False
    for label, step in steps:
        with_commands = [layer for layer in result if any(each.commands for _, each in layer.steps)]
        if step.joins == "previous" and with_commands:
            with_commands[-1].steps.append((label, step))
            continue
        if not goes_on:
            result.append(RunLayer([]))
        result[-1].steps.append((label, step))
        goes_on = step.joins == "next" or not step.commands
    return result


def sections(steps: Iterable[tuple[str, Run]]) -> list[tuple[str, list[RunLayer]]]:
    """Layers of the same blocks that follow each other, with a comment that covers them."""
    result = []
    for labels, group in groupby(layers(steps), key=lambda layer: layer.labels):
        found = list(group)
        told = [(label, step.about) for layer in found for label, step in layer.steps]
        runs = groupby(told, key=lambda each: each[0])
        about = "; ".join(f"{label}: {', '.join(about for _, about in each)}" for label, each in runs)
        result.append((about if len(about) <= WIDTH else ", ".join(labels), found))
    return result


def copies(files: Iterable[TextFile]) -> list[str]:
    """``COPY`` instructions that bring files of the build context to their places."""

    def place(file: TextFile) -> str:
        same = basename(file.path) == basename(file.target)
        return dirname(file.target).rstrip("/") + "/" if same else file.target

    return [f"COPY {' '.join(file.path for file in group)} {target}" for target, group in groupby(files, key=place)]
