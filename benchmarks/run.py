#!/usr/bin/env python3
"""How fast hpcgen is. Prints tables, or JSON with --json; README.md beside it says what is measured and how."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cold_start
import combinations
import fleets
import look_up
import resolving
import warm_render
from timing import CallTimes, Spread

PARTS = ("cold", "warm", "matrix", "lookup", "fleet", "growth")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Nothing here is a test: it reports and exits 0.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    parser.add_argument("--site", default="supermuc", help="site of the cold start (default: %(default)s)")
    parser.add_argument("--stack", default="tf-horovod", help="stack of the cold start (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=30, help="runs of each command (default: %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="calls of each function (default: %(default)s)")
    parser.add_argument(
        "--once", action="store_true", help="as few runs as there can be: to see that it works, not how fast it is"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON, times in seconds")
    asked = parser.parse_args()
    parts = asked.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if asked.rounds < 2 or asked.count < 2:
        parser.error("at least two runs are needed for a spread")

    repeats, budget, step = 3, 2.0, 1
    sites, sizes, fleet, most = [], look_up.SIZES, fleets.Sizes(), max(look_up.SIZES)
    if asked.once:
        asked.rounds, asked.count, repeats, budget, step = 2, 2, 1, 0.0, 41
        sites, sizes, fleet, most = ["workstation"], (10, 100), fleets.Sizes(32, 32, 32), 10

    result: dict[str, Any] = {"machine": {**_machine(), "load before": os.getloadavg()[0]}}
    with tempfile.TemporaryDirectory() as folder:
        if "cold" in parts:
            result["cold"] = cold_start.measure(asked.site, asked.stack, asked.rounds, Path(folder))
        if "warm" in parts:
            result["pairs"] = warm_render.pairs(repeats, step)
            result["warm"] = warm_render.measure(asked.count, budget)
            result["throughput"] = warm_render.throughput(budget)
            result["resolver"] = resolving.matrix(repeats, step)
        if "matrix" in parts:
            result["matrix"] = combinations.measure(Path(folder), repeats, sites)
        if "lookup" in parts:
            result["lookup"] = look_up.measure("mpi-hello", asked.count, asked.rounds, Path(folder), budget, sizes)
        if "fleet" in parts:
            result["fleet"] = fleets.measure(asked.rounds, Path(folder), fleet)
        if "growth" in parts:
            result["growth"] = resolving.growth(repeats, most=most)
    result["machine"]["load after"] = os.getloadavg()[0]
    if asked.json:
        print(json.dumps(result, indent=2, ensure_ascii=False, default=asdict))
    else:
        _print(result)


def _machine() -> dict[str, Any]:
    packages = {name: version(name) for name in ("hpcgen", "hpccm", "msgspec", "PyYAML", "packaging", "python-sat")}
    return {"python": platform.python_version(), "processors": os.cpu_count(), **packages}


def _print(result: Mapping[str, Any]) -> None:
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
    if "cold" in result:
        _print_cold(result["cold"])
    if "warm" in result:
        _print_pairs(result["pairs"])
        _print_warm(result["warm"], result["throughput"])
        _print_resolver(result["resolver"])
    if "matrix" in result:
        _print_matrix(result["matrix"])
    if "lookup" in result:
        _print_look_up(result["lookup"])
    if "fleet" in result:
        _print_fleets(result["fleet"])
    if "growth" in result:
        _print_growth(result["growth"])


def _print_cold(cold: cold_start.ColdStart) -> None:
    rows = [[name, *_cells(cold.wall[name], cold.processor[name])] for name in cold.wall]
    _table(f"cold start, ms ({cold.equal})", ["command", *_HEAD], rows)
    for kind, found in cold.ratio.items():
        times = cold.wall if kind == "wall" else cold.processor
        smallest = times["hpcgen render"].minimum / times["hpccm --recipe"].minimum
        quartiles = f"quartiles {found.lower:.2f} to {found.upper:.2f}"
        met = f"goal ≤ {cold_start.GOAL:g}: {_met(found.median, cold_start.GOAL)}"
        print(f"render / hpccm, {kind}: median {found.median:.2f} ({quartiles}), of the minima {smallest:.2f}; {met}")


def _print_pairs(found: warm_render.Pairs) -> None:
    rows = [
        [what, f"{median * 1000:.2f}", f"{max(times) * 1000:.2f}", f"{goal * 1000:g}", _met(median, goal)]
        for what, times, median, goal in zip(
            ("plan", "recipe"),
            (found.plan, found.recipe),
            found.medians,
            (warm_render.PLAN, warm_render.RECIPE),
            strict=True,
        )
    ]
    title = f"warm, all {len(found.plan)} pairs of site and stack, ms of the processor"
    _table(title, ["part", "median", "slowest", "goal of the median", "met"], rows)


def _print_warm(warm: Mapping[str, warm_render.Warm], throughput: Mapping[int, float]) -> None:
    rows = []
    for name, found in warm.items():
        for what, times in (("plan", found.plan), ("recipe", found.render), ("both", found.both), ("kit", found.kit)):
            rows.append([name if what == "plan" else "", what, *_call_cells(times)])
    _table("warm, in one process, ms", ["site × stack", "part", *_HEAD], rows)
    for threads, rate in throughput.items():
        print(f"plan + recipe of every case in turn, {threads} threads: {rate:.0f} a second")


def _print_matrix(found: combinations.Combinations) -> None:
    rows = [
        [kind, f"{wall:.2f}", f"{found.processor[kind]:.2f}", _met(wall, combinations.GOAL)]
        for kind, wall in found.wall.items()
    ]
    results = ", ".join(f"{number} {result}" for result, number in found.results.items())
    title = f"hpcgen matrix, {found.count} combinations ({results}), seconds"
    _table(title, ["planned", "wall", "cpu", f"wall ≤ {combinations.GOAL:g}"], rows)


def _print_resolver(found: resolving.Matrix) -> None:
    rows = [["median", f"{found.median * 1000:.2f}", _met(found.median, resolving.MEDIAN)]]
    rows += [[case, f"{seconds * 1000:.2f}", _met(seconds, resolving.WORST)] for case, seconds in found.slowest.items()]
    goals = f"≤ {resolving.MEDIAN * 1000:g}, worst ≤ {resolving.WORST * 1000:g}"
    _table(f"resolver, all {found.count} stack × site × partition, ms of the processor", ["case", "best", goals], rows)


def _print_growth(found: Mapping[str, Mapping[int, resolving.Point]]) -> None:
    for title, points in found.items():
        rows = [[f"{size}", f"{point.resolve:.4f}", f"{point.plan:.4f}"] for size, point in points.items()]
        _table(f"{title}, seconds of the processor", ["how many", "resolver", "catalog and plan"], rows)


def _print_look_up(found: look_up.LookUp) -> None:
    for title, cells in (
        ("look-up of one site in a new catalog, ms", {size: _call_cells(found.first[size]) for size in found.first}),
        ("the whole command, ms", {size: _cells(found.wall[size], found.processor[size]) for size in found.wall}),
    ):
        _table(title, ["profiles", *_HEAD], [[f"{size}", *row] for size, row in cells.items()])
    few, many = min(found.first), max(found.first)
    first = found.first[many].processor.median / found.first[few].processor.median
    command = found.processor[many].median / found.processor[few].median
    print(f"{many} against {few} profiles, processor time: look-up {first:.2f}, command {command:.2f} times as long")


def _print_fleets(found: fleets.Fleets) -> None:
    rows = [[f"{size}", *_cells(found.wall[size], found.processor[size])] for size in found.wall]
    _table(f"what changed in a fleet with {fleets.PLANS} plans, ms", ["members", *_HEAD], rows)
    for kind, ratio in found.ratio.items():
        quartiles = f"quartiles {ratio.lower:.2f} to {ratio.upper:.2f}"
        print(
            f"{kind}: {ratio.median:.2f} times as long ({quartiles}); goal ≤ {fleets.GOAL:g}: "
            f"{_met(ratio.median, fleets.GOAL)}"
        )
    large = [
        [name, f"{once.wall:.2f}", f"{once.processor:.2f}", f"{once.memory:.0f}"] for name, once in found.large.items()
    ]
    title = f"{found.sizes.large} members, {found.sizes.records} records: seconds of one run, and its peak of memory"
    _table(title, ["command", "wall", "cpu", "MiB"], large)


_HEAD = ["wall min", "median", "quartiles", "cpu min", "median", "quartiles"]


def _cells(*kinds: Spread) -> list[str]:
    return [cell for times in kinds for cell in _three(times)]


def _call_cells(times: CallTimes) -> list[str]:
    return _cells(times.wall, times.processor)


def _three(times: Spread) -> list[str]:
    quartiles = f"{times.lower * 1000:.2f}–{times.upper * 1000:.2f}"
    return [f"{times.minimum * 1000:.2f}", f"{times.median * 1000:.2f}", quartiles]


def _met(value: float, goal: float) -> str:
    return "yes" if value <= goal else "NO"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    main()
