"""What the resolver alone takes: how its time grows with made-up collections, and for all that is shipped."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from unittest import mock

import hpcgen
from hpcgen.blocks.base import Block, need
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.release import Release
from hpcgen.planning import planner

MEDIAN, WORST = 0.002, 0.05
"""Seconds that the resolver may take for what is shipped, with a warm catalog."""
_SITE = {
    "name": "plain",
    "title": "A plain site",
    "system": {"os": "debian"},
    "partitions": {"main": {"cpu": {"target": "x86_64_v3", "cores": 8}, "memory": {"total_gb": 32}}},
    "default_partition": "main",
    "containers": {"preferred": "docker", "engines": {"docker": {}}},
    "scheduler": {"kind": "none"},
    "network": {"internet": {"login": True, "compute": True}},
}


@contextmanager
def resolver_times() -> Iterator[list[float]]:
    """Processor seconds of each call of the resolver in this thread, appended as they end."""
    times: list[float] = []
    resolve = planner.resolve

    def timed(question: planner.Question) -> object:
        began = time.thread_time()
        try:
            return resolve(question)
        finally:
            times.append(time.thread_time() - began)

    with mock.patch.object(planner, "resolve", timed):
        yield times


# how it grows


@dataclass(frozen=True)
class Point:
    """Seconds of the processor: the resolver alone, and a new catalog with the whole plan."""

    resolve: float
    plan: float


@dataclass(frozen=True)
class World:
    """Blocks with their rows (version → ranges of other blocks) and needs, and what the stack asks for."""

    rows: Mapping[str, Mapping[int, Mapping[str, str]]]
    needs: Mapping[str, list[str]]
    stack: list[str]


def _rows(count: int) -> World:
    """A block has many rows, and the oldest fits."""
    rows = {"many": {number: {} for number in range(1, count + 1)}, "old": {1: {"many": "==1"}}}
    return World(rows, {"old": ["many"]}, ["old"])


def _unrelated(count: int) -> World:
    """The collection has many blocks that nothing needs."""
    names = [f"other{number}" for number in range(count)]
    return World({name: {1: {}} for name in ["one", "two", *names]}, {"one": ["two"]}, ["one"])


def _chain(count: int) -> World:
    """Each block needs the next one."""
    names = [f"link{number:05}" for number in range(count)]
    return World({name: {1: {}} for name in names}, {one: [other] for one, other in pairwise(names)}, names[:1])


def _fan(count: int) -> World:
    """One block needs all others."""
    names = [f"leaf{number:05}" for number in range(count)]
    return World({name: {1: {}} for name in ["all", *names]}, {"all": names}, ["all"])


def _beside(count: int) -> World:
    """Two blocks clash, and the stack has others of ten rows each, which have nothing to do with it."""
    names = [f"beside{number:02}" for number in range(count)]
    rows = {name: {number: {} for number in range(1, 11)} for name in names}
    clash = {"one": {1: {"both": "==1"}}, "two": {1: {"both": "==2"}}, "both": {1: {}, 2: {}}}
    return World({**rows, **clash}, {"one": ["both"], "two": ["both"]}, [*names, "one", "two"])


def _all_clash(count: int) -> World:
    """Two blocks have many rows, and none of one goes with any of the other."""
    numbers = range(1, count + 1)
    rows = {"one": {n: {"both": "==1"} for n in numbers}, "two": {n: {"both": "==2"} for n in numbers}}
    return World({**rows, "both": {1: {}, 2: {}}}, {"one": ["both"], "two": ["both"]}, ["one", "two"])


SERIES: dict[str, tuple[Callable[[int], World], tuple[int, ...]]] = {
    "rows, of which the oldest fits": (_rows, (1, 10, 100, 1_000, 10_000)),
    "blocks that nothing needs": (_unrelated, (1, 10, 100, 1_000, 10_000)),
    "blocks of which each needs the next": (_chain, (10, 100, 1_000, 5_000)),
    "blocks that one block needs": (_fan, (10, 100, 1_000, 5_000)),
    "blocks of ten rows beside a clash": (_beside, (0, 1, 2, 5, 10, 20, 50)),
    "rows of each of two that all clash": (_all_clash, (1, 10, 100, 1_000, 10_000)),
}


def growth(repeats: int = 3, enough: float = 10.0, most: int = 10_000) -> dict[str, dict[int, Point]]:
    """The best of some runs for every size up to ``most``; of a single run where it takes longer than ``enough`` s."""
    found: dict[str, dict[int, Point]] = {}
    for title, (make, sizes) in SERIES.items():
        found[title] = {size: _best(make(size), repeats, enough) for size in sizes if size <= most}
    return found


def _best(world: World, repeats: int, enough: float) -> Point:
    blocks = [_block(world, name) for name in world.rows]
    asked = {name: {} for name in world.stack}
    it = {"name": "it", "title": "It", "blocks": asked, "run": {"command": ["it"], "mpi": False}}
    points: list[Point] = []
    gc.collect()
    while len(points) < repeats and (not points or points[0].plan < enough):
        with resolver_times() as times:
            began = time.thread_time()
            catalog = Catalog([], blocks)
            with suppress(HpcgenError):
                hpcgen.plan(hpcgen.load_site(_SITE), hpcgen.load_stack(it, catalog=catalog), catalog=catalog)
            points.append(Point(times[0], time.thread_time() - began))
    return Point(min(point.resolve for point in points), min(point.plan for point in points))


def _block(world: World, name: str) -> type[Block]:
    releases = {str(version): Release(accepts=dict(ranges)) for version, ranges in world.rows[name].items()}
    needs = tuple(need(other) for other in world.needs.get(name, []))
    return type(name, (Block,), {"__doc__": name, "name": name, "needs": needs, "releases": releases})


# what is shipped


@dataclass(frozen=True)
class Matrix:
    """Every stack on every partition of every site: seconds of the processor that the resolver takes."""

    count: int
    median: float
    slowest: dict[str, float]


def matrix(repeats: int, step: int = 1) -> Matrix:
    """The best of some runs of each case, or of one case of so many, after one that fills the catalog."""
    catalog = Catalog()
    names = [name for name in catalog.names("site") if not catalog.site_document(name).data.get("abstract")]
    sites = [catalog.site(name) for name in names]
    stacks = [catalog.stack(name) for name in catalog.names("stack")]
    cases = [(site, part, stack) for site in sites for part in site.partitions for stack in stacks][::step]
    best: dict[str, float] = {}
    with resolver_times() as times:
        for number in range(repeats + 1):
            for site, partition, stack in cases:
                times.clear()
                with suppress(HpcgenError):
                    planner.make_plan(catalog, site, stack, partition=partition, allow_unsupported=True)
                if number and times:
                    case = f"{stack.name} for {site.name}, {partition}"
                    best[case] = min(best.get(case, times[0]), times[0])
    slowest = sorted(best, key=best.__getitem__, reverse=True)
    return Matrix(len(best), statistics.median(best.values()), {case: best[case] for case in slowest[:3]})
