"""The steps of a recipe: what is done, for which block, and where the engines name it.

What is done is said by the kit's recipe.json; where an instruction stands, by the recipe as the engine reads it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from hpcgen.core.model.recipe_facts import StepLabel

STEP_MARK = "hpcgen: step"
STEP_BEGINS = rf"{STEP_MARK} (\d+) of \d+: "
"""What a step of a definition file prints as it begins: :func:`step_mark`."""

HPCGEN = "hpcgen"
"""Stands where a block's name is for steps that belong to none."""

TEST_STEP = "run the self-test"
"""What the step is called that tests the image as it is built."""

HERE_DOCUMENT = r"<<-?\s*[\"']?([A-Za-z_]\w*)"
"""Where an instruction of a Dockerfile begins one, and the word that ends it."""

Labels = Sequence[Sequence[StepLabel]]
"""By stage: what each of its instructions that run commands is for, in their order."""

_LAYERS = ("FROM", "RUN", "COPY", "ADD", "WORKDIR")
_STEPS = ("FROM", "RUN", "COPY")
_INSTRUCTION = r"([A-Za-z]+)\s+(.*)"


class Step(msgspec.Struct, frozen=True):
    """One step.

    block: the block with its version, or ``hpcgen``.
    about: what is done.
    stage: 1 or 2.
    keyword: the instruction of a Dockerfile; ``BASE``, ``MARK`` or ``WRITE`` elsewhere.
    line: the line of the Dockerfile on which the instruction begins; ch-image names it.
    instruction: which instruction of its stage, from 1; buildah and podman number them so.
    layer: which of those that make a layer, from 1; BuildKit numbers them so.
    image: the base image that a ``FROM`` names.
    """

    block: str
    about: str
    stage: int = 1
    keyword: str = "MARK"
    line: int = 0
    instruction: int = 0
    layer: int = 0
    image: str = ""

    @property
    def title(self) -> str:
        """Block and what is done, in one line."""
        return f"{self.block}: {self.about}"


def without_test(steps: Iterable[Step]) -> list[Step]:
    """The steps of a build that leaves the self-test out, and says so in its place."""
    replace = msgspec.structs.replace
    return [replace(step, about=f"do not {TEST_STEP}") if step.about == TEST_STEP else step for step in steps]


def step_mark(number: int, total: int, label: str, about: str) -> str:
    """The line by which a step of a definition file says that it begins."""
    return f"{STEP_MARK} {number} of {total}: {label}: {about}"


class Recipe(msgspec.Struct, frozen=True):
    """The steps of a recipe, and how many instructions each stage has."""

    steps: list[Step]
    instructions: list[int] = []


class Event(msgspec.Struct, frozen=True):
    """What a line of an engine's output says about a step: ``index`` counts from 0; ``seconds`` if it says so."""

    kind: Literal["begin", "cached", "done", "failed"]
    index: int
    seconds: float | None = None


Reader = Callable[[str], Iterable[Event]]
"""What a line of the engine's output says about the steps."""


def dockerfile_steps(text: str, labels: Labels | None = None) -> Recipe:
    """Steps of a Dockerfile: its ``FROM``, ``RUN`` and ``COPY`` instructions.

    ``labels``: of its ``RUN`` instructions; None for a kit of hpcgen 0.1.0.
    """
    steps: list[Step] = []
    instructions: list[int] = []
    layers = 0
    told = [iter(stage) for stage in (_labels_in_comments(text) if labels is None else labels)]
    for line, keyword, words in dockerfile_instructions(text):
        if keyword == "FROM":
            instructions.append(0)
            layers = 0
        if not instructions:  # an ARG before the first FROM
            continue
        instructions[-1] += 1
        layers += keyword in _LAYERS
        if keyword in _STEPS:
            stage = len(instructions)
            label = _label(keyword, words)
            if keyword == "RUN" and stage <= len(told):
                label = next(told[stage - 1], label)
            image = _base_named(words) if keyword == "FROM" else ""
            steps.append(Step(label.block, label.about, stage, keyword, line, instructions[-1], layers, image))
    return Recipe(steps, instructions)


def dockerfile_instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, keyword and the rest of the first line of every instruction."""
    continued, until = False, ""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if until:
            until = "" if line.strip() == until else until
            continue
        if continued and line.lstrip().startswith("#"):
            continue
        found = None if continued else re.match(_INSTRUCTION, line.lstrip())
        if found is not None:
            keyword = found[1].upper()
            yield number, keyword, found[2]
            opened = re.search(HERE_DOCUMENT, found[2]) if keyword in ("RUN", "COPY", "ADD") else None
            ended = opened is not None and any(each.strip() == opened[1] for each in lines[number:])
            until = opened[1] if opened is not None and ended else ""
        continued = line.rstrip().endswith("\\")


def _base_named(words: str) -> str:
    """The image of a ``FROM``."""
    return next((word for word in words.split() if not word.startswith("--")), "")


def _label(keyword: str, words: str) -> StepLabel:
    """What an instruction says of itself."""
    about = words.rstrip(" \\")
    if keyword == "FROM":
        about = f"base image {_base_named(words)}"
    elif keyword == "COPY":
        sources = [word for word in words.split() if not word.startswith("--")][:-1]
        about = f"copy {' '.join(sources)}{' from the builder' if words.startswith('--from') else ''}"
    return StepLabel(block=HPCGEN, about=about)


def definition_steps(text: str, labels: Labels | None = None) -> Recipe:
    """Steps of a definition file: each stage's base, then what its section ``%post`` does.

    ``labels``: of the steps that name themselves by number as they begin; None for a kit of hpcgen 0.1.0.
    """
    bases = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.lower().startswith("from:")]
    steps: list[Step] = []
    told_by_stage = _labels_in_marks(text) if labels is None else labels
    for stage, (base, told) in enumerate(zip(bases, told_by_stage, strict=False), 1):
        steps.append(Step(HPCGEN, f"base image {base}", stage, "BASE"))
        steps += [Step(label.block, label.about, stage) for label in told]
    return Recipe(steps)


# Kits of hpcgen 0.1.0 have no recipe.json: there alone the recipe's own words are read.


def _labels_in_comments(text: str) -> Labels:
    stages: list[list[StepLabel]] = []
    lines = text.splitlines()
    for number, keyword, words in dockerfile_instructions(text):
        if keyword == "FROM":
            stages.append([])
        elif keyword == "RUN" and stages:
            above = lines[number - 2]
            block, separator, about = above.removeprefix("#").strip().partition(": ")
            told = above.startswith("#") and separator
            stages[-1].append(StepLabel(block=block, about=about) if told else _label(keyword, words))
    return stages


def _labels_in_marks(text: str) -> Labels:
    stages: list[list[StepLabel]] = []
    mark = re.compile(rf"{STEP_BEGINS}(.+?): (.+)")
    for line in text.splitlines():
        if line.lower().startswith("from:"):
            stages.append([])
        elif STEP_MARK in line and stages:
            found = mark.fullmatch(shlex.split(line)[-1])
            if found is not None:
                stages[-1].append(StepLabel(block=found[2], about=found[3]))
    return stages
