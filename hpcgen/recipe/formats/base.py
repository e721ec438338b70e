"""The base class of formats: how a recipe begins, is laid out and written; contents of kit and build context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from posixpath import basename, dirname
from typing import ClassVar

import msgspec

from hpcgen.backends.engines.steps import HPCGEN
from hpcgen.blocks.steps import ArchiveFile, Run, TextFile
from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.image_paths import NOTEST
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import plain
from hpcgen.core.support.traced import Subject
from hpcgen.recipe.formats.hpccm_session import Written
from hpcgen.recipe.stages import Assembly

# The header of every file.

DECIDED = "hpcgen optimise "
"""How the command of a plan begins that comes with a report of its decision."""


def header(plan: Plan, what: str = "", *, alone: bool = False) -> list[str]:
    """Three lines without comment marks: what it makes of which versions, how it was made, where the reasons are.

    Named are the blocks that the stack asks for, with the MPI, and the base.

    ``what``: the kind of file, such as ``build script of ``; "" for the recipe itself. ``alone``: the file is not one
    of a kit, so that no other lies beside it.
    """
    asked = [block for name in (*plan.stack.blocks, "mpi") if (block := plan.block(name)) is not None]
    named = {block.name: f"{block.name} {block.version}" for block in asked if not block.build_only}
    # Of an image that hpcgen did not build no block is known.
    base = plan.blocks[0] if plan.blocks else None
    if base is not None:
        named.pop(base.name, None)
    made = f": {plan.command}" if plan.command else " from Python"
    again = "the same command with plan in place of render"
    where = f"plan.json next to this file, or {again}"
    if plan.command.startswith(DECIDED):
        where = "decision.md next to this file"
    return [
        f"{what}{plan.stack.name} for {plan.site.name}, partition {plan.partition}"
        + (f": {', '.join(named.values())} on {base.name} {base.version}" if base is not None else ""),
        f"made by hpcgen {plan.hpcgen}{made}",
        f"why these versions: {again if alone else where}",
    ]


def commented(lines: list[str]) -> str:
    """The lines as a comment of shells, Dockerfiles and definition files; InputError if one would not stay one."""
    return "\n".join(f"# {plain(line, 'a comment')}".rstrip() for line in lines)


class Format:
    """Base of the formats: a writer, which knows no block and no site by name.

    name: as ``--format`` names it.
    recipe_file: the file of a kit that holds the recipe.
    engine_file: the file that engines read; where it is not ``recipe_file``, it is what that has in a here-document.
    certificate_folder: folder of the build context with the site's certificates; "" where it names them by their paths.
    notest: words of an engine's build command that leave the self-test out.
    first_kit_folder: where in the build context recipes of hpcgen 0.1.0 look for the kit's files.
    bundle_link: what a bundle is called in the build context; "" where the engine is told where it lies.
    packages: OS packages that a build of this format installs beside those of the blocks, where there is apt.
    base_from_tar: engines import the base images of a bundle from tar files of their whole content.
    read_by: engines that read it beside those whose own format it is.
    setup: command lines that make machines of CI services ready to build, by what these call them; empty where nothing
        is missing. For other machines none is known.
    ready_engines: by the same names, the engines that are there then, where others read the format, too.
    unprivileged: variables with which its builders work in a container without rights of its own.
    """

    name: ClassVar[str]
    recipe_file: ClassVar[str]
    engine_file: ClassVar[str]
    certificate_folder: ClassVar[str] = "certificates"
    notest: ClassVar[tuple[str, ...]] = ("--build-arg", f"{NOTEST}=1")
    first_kit_folder: ClassVar[str] = ""
    bundle_link: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    base_from_tar: ClassVar[bool] = False
    read_by: ClassVar[tuple[EngineName, ...]] = ()
    setup: ClassVar[Mapping[str, str]] = {}
    ready_engines: ClassVar[Mapping[str, tuple[EngineName, ...]]] = {}
    unprivileged: ClassVar[Mapping[str, str]] = {}

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """The text of :attr:`recipe_file`, and what its steps are for.

        InputError, PolicyError: something in the stages cannot be written in this format.
        """
        raise NotImplementedError

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """The text of ``build.sh``; not asked for where that is the recipe."""
        raise NotImplementedError


FILES = "files"
"""Folder of the kit with the files that steps copy."""
WIDTH = 112
_WORD = r"""(?:[^\s"'\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+"""


def wrapped(command: str, indent: str = " " * 8) -> str:
    """A shell command over several lines, each but the last with a backslash at its end, none broken inside quotes."""
    if len(command) <= WIDTH:
        return command
    lines, line = [], ""
    for word in re.findall(_WORD, command):
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


def copies(files: Iterable[TextFile | ArchiveFile]) -> list[str]:
    """``COPY`` instructions that bring files of the build context to their places."""

    def place(file: TextFile | ArchiveFile) -> str:
        same = basename(file.path) == basename(file.target)
        return dirname(file.target).rstrip("/") + "/" if same else file.target

    return [f"COPY {' '.join(file.path for file in group)} {target}" for target, group in groupby(files, key=place)]
