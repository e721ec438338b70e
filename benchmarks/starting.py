#!/usr/bin/env python3
"""How long an image takes to start, by its engine alone and by ``hpcgen run``: to Python's first line and an import.

Each round starts every image in both ways, in an order drawn anew, and each time is from before the start to the clock
that the program itself reads. What ``hpcgen run`` adds is the difference within a round. The machine's load and the
share of the time in which programs waited for a CPU are those before the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hpcgen.plugins.tuning.bench.pressure import waiting

ENGINES = {
    "ch-run": ["ch-run", "--unset-env=*", "--set-env=PATH=/usr/bin:/bin"],
    "apptainer": ["apptainer", "--silent", "exec"],
    "podman": ["podman", "run", "--rm", "--network=host"],
}
_PROGRAM = "import time; first = time.time(); import {module}; print(first, time.time())"


def main() -> None:
    """Print a row for each image and way, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Nothing here is a test: it reports and exits 0.")
    parser.add_argument("image", nargs="+", metavar="ENGINE=IMAGE", help=f"ENGINE: {', '.join(ENGINES)}")
    parser.add_argument("--site", required=True, metavar="PROFILE", help="the profile of this machine for hpcgen run")
    parser.add_argument("--module", default="numpy", help="what is imported (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="starts of each (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON, times in seconds")
    asked = parser.parse_args()
    images = [each.partition("=") for each in asked.image]
    if wrong := [engine for engine, _, image in images if engine not in ENGINES or not image]:
        parser.error(f"{wrong[0]} is not one of {', '.join(ENGINES)}, with an image after =")
    if asked.rounds < 2:
        parser.error("at least two rounds are needed for quartiles")
    program = ["python3", "-c", _PROGRAM.format(module=asked.module)]
    calls = {}
    for engine, _, image in images:
        named = f"podman:{image}" if engine == "podman" else image
        own = [sys.executable, "-m", "hpcgen", "run", named, "--site", asked.site, "--engine", engine, "--", *program]
        end = ["--"] if engine == "ch-run" else []
        calls[engine, image] = ([*ENGINES[engine], image, *end, *program], own)
    times, load, waited = measured(calls, asked.rounds)
    rows = [row(engine, image, times[engine, image]) for engine, image in calls]
    if asked.json:
        print(json.dumps({"rounds": asked.rounds, "load": load, "waited": waited, "rows": rows}, indent=1))
        return
    print(f"{asked.rounds} rounds, load {load:.1f}, waited for a CPU {waited:.0%}; medians in seconds")
    for each in rows:
        print(
            f"{each['engine']} {each['image']}: first line {each['engine_first']:.3f} and {each['hpcgen_first']:.3f} "
            f"by hpcgen run, which adds {each['adds']:.3f} ({each['adds_lower']:.3f} to {each['adds_upper']:.3f}; "
            f"{each['processor']:.3f} of the processor); import {asked.module} {each['engine_import']:.3f} and "
            f"{each['hpcgen_import']:.3f}"
        )


Start = tuple[float, float, float]
"""Seconds to the first line, of the import, and of the processor."""


def measured(
    calls: dict[tuple[str, str], tuple[list[str], list[str]]], rounds: int
) -> tuple[dict[tuple[str, str], list[tuple[Start, Start]]], float, float]:
    """The starts of each image by its engine and by hpcgen, a pair for each round; the load, and the share waited."""
    times: dict[tuple[str, str], list[tuple[Start, Start]]] = {name: [] for name in calls}
    loads, shares = [], []
    for number in range(rounds + 1):
        shares.append(waiting() or 0.0)
        loads.append(os.getloadavg()[0])
        for name in random.sample(list(calls), len(calls)):
            order = random.sample((0, 1), 2)
            found = {which: started(calls[name][which]) for which in order}
            # In the first round byte code and pages of the image are not there yet.
            times[name] += [(found[0], found[1])] if number else []
    return times, statistics.mean(loads), statistics.mean(shares)


def started(words: Sequence[str]) -> Start:
    """One start; SystemExit with its last words if it fails."""
    began, used = time.time(), _processor()
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:6])} … ended with {done.returncode}: {(done.stderr or done.stdout)[-400:]}")
    first, last = map(float, done.stdout.split()[-2:])
    return first - began, last - first, _processor() - used


def _processor() -> float:
    times = os.times()
    return times.children_user + times.children_system


def row(engine: str, image: str, pairs: list[tuple[Start, Start]]) -> dict[str, str | float]:
    """Medians of both ways, and of what hpcgen adds, with its quartiles."""
    added = [own[0] - alone[0] for alone, own in pairs]
    lower, middle, upper = statistics.quantiles(added, n=4, method="inclusive")
    found: dict[str, str | float] = {"engine": engine, "image": Path(image).name}
    for way, which in (("engine", 0), ("hpcgen", 1)):
        found[f"{way}_first"] = statistics.median(pair[which][0] for pair in pairs)
        found[f"{way}_import"] = statistics.median(pair[which][1] for pair in pairs)
    return found | {
        "adds": middle,
        "adds_lower": lower,
        "adds_upper": upper,
        "processor": statistics.median(own[2] - alone[2] for alone, own in pairs),
    }


if __name__ == "__main__":
    main()
