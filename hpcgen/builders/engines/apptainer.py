"""Apptainer and Singularity.

Output, seen with Apptainer 1.4.5: ``INFO:    Starting build...`` at the beginning, then what the steps print (each
names itself, see ``formats.singularity``), lines of ``INFO:`` when the next stage's base is taken, and at the end
``INFO:    Running testscript`` and ``INFO:    Creating SIF file...``. The file is written to the given name while the
build goes on, and steps are never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcgen.builders.engines.base import Builder, Call, Reader, Target, Work
from hpcgen.builders.places import file_target, job_image
from hpcgen.builders.progress import Event
from hpcgen.builders.steps import HPCGEN, Labels, Recipe, Step, definition_steps
from hpcgen.model.plan import Plan
from hpcgen.recipe.formats.bundled import EVERY_IMAGE_HAS
from hpcgen.recipe.formats.singularity import STEP_MARK

_MARK = re.compile(rf"{re.escape(STEP_MARK)} (\d+) of \d+: ")


class Apptainer(Builder):
    """A SIF file, or a folder (a sandbox) where the name does not end in .sif."""

    format = "singularity"
    keeps_steps = False

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """A file, or a folder."""
        return file_target(output or job_image(plan), token, {".sif": "sif"})

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the definition file."""
        return definition_steps(text, labels)

    def later_steps(self, target: Target) -> list[Step]:
        """The image is tested as it is built, and a SIF file takes as long to write as many steps."""
        test = Step(HPCGEN, "run the self-test", 2, "TEST")
        return [test, Step(HPCGEN, "write the SIF file", 2, "WRITE")] if target.kind == "sif" else [test]

    def build(self, work: Work) -> list[Call]:
        """build, in the folder from which the definition file takes the kit's files and a bundle's images."""
        site = work.plan.site.containers.engines.get(work.plan.engine)
        words = [self.program, "build"]
        if site is not None and site.fakeroot and not work.root:
            words.append("--fakeroot")
        words.append("--force")
        if work.target.kind == "directory":
            words.append("--sandbox")
        if work.bundle is not None:
            words += ["--bind", f"{work.bundle.folder}:{EVERY_IMAGE_HAS}:ro"]
        return [Call((*words, *work.options, work.target.temporary, str(work.recipe)), cwd=work.context)]

    def reader(self, recipe: Recipe) -> Reader:
        """By the number that a step prints, and by what the program itself says between them."""
        marks = [index for index, step in enumerate(recipe.steps) if step.keyword == "MARK"]
        said = {"TEST": "Running testscript", "WRITE": "Creating SIF file..."}
        later = {text: i for i, step in enumerate(recipe.steps) for key, text in said.items() if step.keyword == key}
        current = -1

        def begin(index: int) -> Event:
            nonlocal current
            current = index
            return Event("begin", index)

        def read(line: str) -> Iterator[Event]:
            found = _MARK.match(line)
            if found is not None and int(found[1]) <= len(marks):
                yield begin(marks[int(found[1]) - 1])
            elif line.startswith("INFO: "):
                text = line.partition(":")[2].strip()
                if text in later:
                    yield begin(later[text])
                # The program itself speaks before the first step and between those of two stages.
                elif current + 1 < len(recipe.steps) and recipe.steps[current + 1].keyword == "BASE":
                    yield begin(current + 1)

        return read
