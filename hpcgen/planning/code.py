"""A stack's own code and files: the repositories of ``git``, the programs that ``build`` compiles, and ``copy``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.plan import PlannedCopy
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import BuildSpec, OptionValue, Stack, StackBlock
from hpcgen.recipe.bind_targets import bound_file_systems

TREES, PROGRAM = "git_code", "application"
"""The blocks that do so."""


def with_code(stack: Stack, document: Document | None = None) -> Stack:
    """The stack with the blocks that its ``git`` and ``build`` stand for, after all others.

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
                "fast_math": build.fast_math,
                "flags": build.flags,
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


# The stack's own files in a plan: read by the catalog, and not hidden by binds.

T = TypeVar("T")


def copied_files(catalog: Catalog, site: Site, stack: Stack, document: Document | None) -> list[PlannedCopy]:
    """The record of the files that a stack copies.

    InputError: they cannot be copied, or the site's jobs would not see them, or what ``git`` brings; each with its
    place in ``document``.
    """
    copied = catalog.copied.planned(stack, document)

    def place(at: tuple[str, int]) -> Position | None:
        return document.position([*at, "to"]) if document is not None else None

    check_seen(site, [((field, number), target) for field, number, target in stack.code_places], place)
    return copied


def check_seen(site: Site, places: Iterable[tuple[T, str]], position: Callable[[T], Position | str | None]) -> None:
    """InputError where something of the host's is bound over places in the image, each with its own position."""
    binds = [*site.mpi.binds, *(bind for each in site.mpi.gpu.values() for bind in each.binds)] if site.mpi else []
    bound = sorted({bind.target for bind in binds} | set(bound_file_systems(site)))
    problems = Problems()
    for at, place in places:
        if hidden := [path for path in bound if overlap(place, path)]:
            problems.add(
                f"jobs would not see all of {place}: on {site.name} the host's {' and '.join(hidden)} is bound there",
                position(at),
                remedy="choose another `to`, such as /opt/files",
            )
    problems.raise_as(InputError)
