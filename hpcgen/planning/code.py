"""A stack's own code as blocks: the repositories of ``git``, and the programs that ``build`` compiles."""

from __future__ import annotations

from functools import partial

import msgspec

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.stack import BuildSpec, OptionValue, Stack, StackBlock

TREES, PROGRAM = "git_code", "application"
"""The blocks that do so."""


def with_code(stack: Stack, document: Document | None = None) -> Stack:
    """The stack with the blocks that its ``git`` and ``build`` stand for, after all others.

    Raises
    ------
    InputError: ``build`` has no folder to work in, or the stack names one of these blocks as well; with its place.
    """
    asked: dict[str, StackBlock] = {}
    problems = Problems()
    if stack.git:
        trees = [f"{each.from_} {each.commit} {each.to}" for each in stack.git]
        asked[TREES] = StackBlock(options={"trees": trees})
    if (build := stack.build) is not None:
        with problems.caught(partial(_place, document, "build")):
            options: dict[str, OptionValue] = {
                "folder": _folder(stack, build),
                "commands": build.commands,
                "mpi": build.mpi,
            }
            asked[PROGRAM] = StackBlock(options=options)
    for name, field in ((TREES, "git"), (PROGRAM, "build")):
        if name in asked and stack.blocks.get(name, asked[name]) != asked[name]:
            message = f"`{field}` stands for the block {name}, which the stack names too"
            problems.add(message, _place(document, "blocks", name), remedy=f"use only `{field}`")
    problems.raise_as(InputError)
    return msgspec.structs.replace(stack, blocks={**stack.blocks, **asked}) if asked else stack


def _folder(stack: Stack, build: BuildSpec) -> str:
    """The folder in which the commands of a build run; InputError if the stack puts nothing there."""
    places = [place for _, _, place in stack.code_places]
    if build.in_ is None and len(places) == 1:
        return places[0]
    if build.in_ is None:
        there = " or ".join(places) if places else "a folder that `copy` or `git` fills"
        raise InputError("the folder in which `build` runs its commands is not set", expected=f"build.in: {there}")
    if not any(overlap(build.in_, place) for place in places):
        there = f"one of {', '.join(places)}, or a folder in it" if places else "`copy` or `git` to put code there"
        raise InputError(f"neither `copy` nor `git` puts anything into {build.in_}, where `build` runs", expected=there)
    return build.in_


def _place(document: Document | None, *path: str) -> Position | None:
    return document.position(list(path), key=True) if document is not None else None
