"""Packages of blocks in versions that no release table has: the project's own wheels, which nobody here has tried."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from hpcgen.blocks.requirements import in_range, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.stack import Stack, StackBlock

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

    Parameters
    ----------
    asked: block and range of each package of the project that a block provides.
    kept: blocks that decide the version themselves.
    """
    found = {block for block, versions in asked if block not in kept and not is_listed(catalog, block, versions)}
    while more := {block for block, _ in asked if block not in {*found, *kept} and _needs(catalog, block) & found}:
        found |= more
    return found


def _needs(catalog: Catalog, block: str) -> set[str]:
    return {need.name for need in catalog.block(block).needs if need.when is None}


def deciding_blocks(stack: Stack, said: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Blocks of which the stack or ``--set`` says more than that they are to be there."""
    return {*said, *(name for name, block in stack.blocks.items() if block != StackBlock())}
