"""The shortest chain of single conversions that works here; the kinds of images have these, one row each.

Facts of the programs: ch-convert(1) and its text (0.31), skopeo-copy(1), buildah-push(1), buildah-from(1),
podman-save(1), Apptainer's "build" reference, unsquashfs and mksquashfs -h; each chain was run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

from hpcgen.images.kinds import every_kind
from hpcgen.images.kinds.base import Conversion


def every_conversion() -> list[Conversion]:
    """The rows of every kind, in the kinds' order."""
    return [row for kind in every_kind() for row in kind.conversions]


def chain(start: str, end: str, have: Callable[[str], bool]) -> list[Conversion] | None:
    """The cheapest rows that lead from one kind to the other with programs that ``have`` tells; None if none does."""
    table = every_conversion()
    waiting: list[tuple[int, list[int], str]] = [(0, [], start)]
    done: set[str] = set()
    while waiting:
        cost, taken, kind = heapq.heappop(waiting)
        if kind == end:
            return [table[number] for number in taken]
        if kind in done:
            continue
        done.add(kind)
        for number, row in enumerate(table):
            if row.start == kind and row.end not in done and all(have(program) for program in row.programs):
                heapq.heappush(waiting, (cost + row.cost, [*taken, number], row.end))
    return None


def missing(start: str, end: str, have: Callable[[str], bool]) -> list[str]:
    """The fewest programs that would have to be installed; empty if no program helps."""
    absent = sorted({program for row in every_conversion() for program in row.programs if not have(program)})
    for count in (1, 2, 3):
        for extra in combinations(absent, count):
            if chain(start, end, partial(_with, have, extra)) is not None:
                return list(extra)
    return []


def _with(have: Callable[[str], bool], extra: Sequence[str], program: str) -> bool:
    return program in extra or have(program)
