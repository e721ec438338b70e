"""``hpcgen matrix``: all sites, stacks and ways of installing, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cold_start import compiled, program
from timing import Command, start

GOAL = 10.0
"""Seconds of the clock for all of them, planned anew."""


@dataclass(frozen=True)
class Combinations:
    """The best of some runs: seconds of the clock and of the processor, planned anew or as kept."""

    count: int
    results: dict[str, int]
    wall: dict[str, float]
    processor: dict[str, float]


def measure(folder: Path, runs: int, sites: Sequence[str] = ()) -> Combinations:
    """Run the command, once to see what comes of it, with one process, with one for each CPU, and as users do.

    Parameters
    ----------
    sites: only these; all if empty.
    """
    words = [program("hpcgen"), "matrix", "--json", *(word for site in sites for word in ("--site", site))]
    environment = {**compiled(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    wall, processor = {}, {}
    cpus = min(len(os.sched_getaffinity(0)), 8)
    kinds = {f"{number} at once": ["--fresh", "--processes", f"{number}"] for number in sorted({1, cpus})}
    for kind, more in {**kinds, "kept": []}.items():
        times = [start(Command([*words, *more], environment)) for _ in range(runs)]
        wall[kind], processor[kind] = min(each[0] for each in times), min(each[1] for each in times)
    results = {
        each: sum(numbers[each] for numbers in found["stacks"].values()) for each in ("renders", "cpu", "refused")
    }
    return Combinations(len(found["combinations"]), results, wall, processor)
