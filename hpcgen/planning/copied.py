"""The stack's own files in a plan: read by the catalog, and not hidden by binds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.plan import PlannedCopy
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.recipe.assemble import bound_file_systems

T = TypeVar("T")


def copied_files(catalog: Catalog, site: Site, stack: Stack, document: Document | None) -> list[PlannedCopy]:
    """The record of the files that a stack copies.

    Raises
    ------
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
    binds = site.mpi.binds if site.mpi is not None else []
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
