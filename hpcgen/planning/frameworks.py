"""Packages that require a framework which blocks install: the block is taken, so that pip does not bring another build.

The index's build of PyTorch is for NVIDIA's GPUs. On a node with others, or with none, it installs and computes on the
CPU, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from hpcgen.blocks.requirements import Origin, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.project import BLOCK


def required_frameworks(catalog: Catalog, name: str, extras: Iterable[str] = ()) -> list[str]:
    """The distributions of blocks that a package of the index requires, as far as the release table knows.

    ``name``: of the package, in its normal form. ``extras``: of it that are wanted.
    """
    rows = catalog.releases(BLOCK).values() if BLOCK in catalog.names("block") else ()
    known = next((row.values.get("requires", {}) for row in rows), {})
    table = msgspec.convert(known, dict[str, str])
    words = [table.get(each, "") for each in (name, *(f"{name}[{extra}]" for extra in extras))]
    return list(dict.fromkeys(each for word in words for each in word.split() if each in catalog.distributions))


def framework_demands(
    catalog: Catalog, name: str, extras: Iterable[str], by: str, without: Collection[str] = ()
) -> Iterator[Requirement]:
    """Requirements on the blocks of what a package requires.

    ``by``: the package and where it is asked for. ``without``: blocks whose packages come another way.
    """
    for distribution in required_frameworks(catalog, name, extras):
        block = catalog.distributions[distribution]
        if block in without:
            continue
        origin = Origin(f"{by}, which requires {distribution},", kind="file")
        yield Requirement(catalog.identifier(block), {block: ""}, origin, {})


def pinned_demands(catalog: Catalog, pins: Iterable[str], said: str) -> Iterator[Requirement]:
    """The same of packages that a stack or the command line pins (``lightning==2.5.0``)."""
    from hpcgen.core.support.package_names import normal_name

    for pin in pins:
        yield from framework_demands(catalog, normal_name(pin.partition("==")[0]), (), f"{pin} of {said}")


def absent_frameworks(catalog: Catalog, blocks: Iterable[str], own: Collection[str] = ()) -> list[str]:
    """Distributions of blocks that a plan does not have; ``own``: of these, blocks whose packages come another way."""
    there = {*blocks, *own}
    return sorted(name for name, block in catalog.distributions.items() if block not in there)
