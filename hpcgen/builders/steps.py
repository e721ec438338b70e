"""The steps of a recipe, read from its text: what is done, for which block, and where the engines name it.

A recipe says what each of its steps is for: in a Dockerfile in the comment above the ``RUN``, in a definition file
by what the step prints as it begins (``formats.singularity.STEP_MARK``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec

from hpcgen.recipe.formats.singularity import STEP_MARK

HPCGEN = "hpcgen"
"""Stands where a block's name is for steps that belong to none."""

_LAYERS = ("FROM", "RUN", "COPY", "ADD", "WORKDIR")
_STEPS = ("FROM", "RUN", "COPY")
_INSTRUCTION = re.compile(r"([A-Z]+)\s+(.*)")
_MARK = re.compile(rf"{re.escape(STEP_MARK)} \d+ of \d+: (.+)")


class Step(msgspec.Struct, frozen=True):
    """One step.

    Parameters
    ----------
    block: the block with its version, or ``hpcgen``.
    about: what is done.
    stage: 1 or 2.
    keyword: the instruction of a Dockerfile; ``BASE``, ``MARK`` or ``WRITE`` elsewhere.
    line: the line of the Dockerfile on which the instruction begins; ch-image names it.
    instruction: which instruction of its stage, from 1; buildah and podman number them so.
    layer: which of those that make a layer, from 1; BuildKit numbers them so.
    """

    block: str
    about: str
    stage: int = 1
    keyword: str = "MARK"
    line: int = 0
    instruction: int = 0
    layer: int = 0

    @property
    def title(self) -> str:
        """Block and what is done, in one line."""
        return f"{self.block}: {self.about}"


class Recipe(msgspec.Struct, frozen=True):
    """The steps of a recipe, and how many instructions each stage has."""

    steps: list[Step]
    instructions: list[int] = []


def dockerfile_steps(text: str) -> Recipe:
    """Steps of a Dockerfile: its ``FROM``, ``RUN`` and ``COPY`` instructions."""
    steps: list[Step] = []
    instructions: list[int] = []
    layers = 0
    for line, comment, keyword, words in _instructions(text):
        if keyword == "FROM":
            instructions.append(0)
            layers = 0
        if not instructions:  # an ARG before the first FROM
            continue
        instructions[-1] += 1
        layers += keyword in _LAYERS
        if keyword in _STEPS:
            block, about = _meaning(keyword, words, comment)
            steps.append(Step(block, about, len(instructions), keyword, line, instructions[-1], layers))
    return Recipe(steps, instructions)


def _instructions(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line number, comment right above, keyword and the rest of the first line of every instruction."""
    comment = ""
    continued = False
    for number, line in enumerate(text.splitlines(), 1):
        if not continued:
            found = _INSTRUCTION.match(line)
            if found is not None:
                yield number, comment, found[1], found[2]
            comment = line[1:].strip() if line.startswith("#") else ""
        continued = line.endswith("\\")


def _meaning(keyword: str, words: str, comment: str) -> tuple[str, str]:
    if keyword == "FROM":
        return HPCGEN, f"base image {words.split()[0]}"
    if keyword == "COPY":
        *options, source, _target = words.split()
        return HPCGEN, f"copy {source} from the builder" if options else f"copy {source}"
    block, separator, about = comment.partition(": ")
    return (block, about) if separator else (HPCGEN, words.rstrip(" \\"))


def definition_steps(text: str) -> Recipe:
    """Steps of a definition file: each stage's base, and what the steps print when they begin."""
    steps: list[Step] = []
    stage = 0
    for line in text.splitlines():
        if line.lower().startswith("from:"):
            stage += 1
            steps.append(Step(HPCGEN, f"base image {line.split(':', 1)[1].strip()}", stage, "BASE"))
        elif STEP_MARK in line:
            found = _MARK.fullmatch(shlex.split(line)[-1])
            if found is not None:
                block, _, about = found[1].partition(": ")
                steps.append(Step(block, about, stage))
    return Recipe(steps)
