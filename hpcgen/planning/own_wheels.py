"""Packages of blocks in versions that no release table has: the project's own wheels, which nobody here has tried."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpcgen.blocks.requirements import in_range, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Position
from hpcgen.core.model.project import BLOCK, PackageFile
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.core.support.package_names import normal_name

PACKAGES = "packages"

_BUILD = re.compile(r"\+(?!cpu\b|cu\d+|rocm\d)")
"""The local part of a version (PEP 440) that names none of the builds which tables have or stand for."""


def is_listed(catalog: Catalog, block: str, versions: str) -> bool:
    """Whether the table of a block has a release in a range of one of its packages."""
    from hpcgen.readers.pip_text import public_range

    wanted = public_range(versions)
    return not _BUILD.search(versions) and any(in_range(each, wanted) for each in catalog.releases(block))


def nearest(catalog: Catalog, block: str, number: str) -> str:
    """The release of the tables that comes before a version, else the one after it."""
    known = sorted(catalog.releases(block), key=version)
    return next((each for each in reversed(known) if version(each) <= version(number)), known[0])


def unlisted_blocks(catalog: Catalog, asked: Sequence[tuple[str, str]], kept: Collection[str] = ()) -> set[str]:
    """Blocks whose packages are installed as a project's own wheels: those asked for in versions that no table has,
    and those that are built for such a one.

    ``asked``: block and range of each package of the project that a block provides. ``kept``: blocks that decide the
    version themselves.
    """
    found = {block for block, versions in asked if block not in kept and not is_listed(catalog, block, versions)}
    while more := {block for block, _ in asked if block not in {*found, *kept} and _needs(catalog, block) & found}:
        found |= more
    return found


def _needs(catalog: Catalog, block: str) -> set[str]:
    return {need.name for need in catalog.block(block).needs if need.when is None}


class NamedPins(NamedTuple):
    """Packages of blocks among the ``packages`` of a stack, ``--set`` and ``--add``, and these without them.

    ``file``: as a file of the project has them; None where there are none.
    """

    stack: Stack
    said: Mapping[str, Mapping[str, str]]
    file: PackageFile | None = None


def named_pins(
    catalog: Catalog, stack: Stack, said: Mapping[str, Mapping[str, str]], document: Document | None
) -> NamedPins:
    """Separate what blocks provide from the other packages that are named with a version.

    ``stack``: with what ``--add`` names. ``document``: of the stack, for positions.
    """
    block = stack.blocks.get(BLOCK, StackBlock())
    by_set = said.get(BLOCK, {}).get(PACKAGES)
    listed = block.options.get(PACKAGES) if by_set is None else by_set.split(",")
    pins = [pin for pin in listed if isinstance(pin, str)] if isinstance(listed, list) else []
    own = [pin for pin in pins if normal_name(pin.partition("==")[0]) in catalog.distributions]
    if not own:
        return NamedPins(stack, said)
    from hpcgen.readers.pip_text import requirement

    rest: list[str] = [pin for pin in pins if pin not in own]
    if by_set is not None:
        said = {**said, BLOCK: {**said[BLOCK], PACKAGES: ",".join(rest)}}
    else:
        more = {BLOCK: msgspec.structs.replace(block, options={**block.options, PACKAGES: rest})}
        stack = msgspec.structs.replace(stack, blocks={**stack.blocks, **more})
    asked = [requirement(pin, _place(pin, pins.index(pin), by_set is not None, document)) for pin in own]
    return NamedPins(stack, said, PackageFile(file="packages", kind="requirements", requirements=asked))


def _place(pin: str, number: int, by_set: bool, document: Document | None) -> Position:
    """The line of the stack that names a package; else the option that does."""
    path = ["blocks", BLOCK, "options", PACKAGES]
    there: Any = document.data if document is not None else None
    for step in path:
        there = there.get(step) if isinstance(there, Mapping) else None
    if by_set or not isinstance(there, list) or pin not in there or document is None:
        return Position("--set" if by_set else "--add", 0, 0)
    found = document.position([*path, number])
    return Position(Path(found.file).name, found.line, found.column)


def deciding_blocks(stack: Stack, said: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Blocks of which the stack or ``--set`` says more than that they are to be there."""
    return {*said, *(name for name, block in stack.blocks.items() if block != StackBlock())}
