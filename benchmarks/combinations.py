"""``hpcgen matrix``: all sites, stacks and ways of installing, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cold_start import compiled, program
from timing import Command, start

GOAL = 5.0
"""Seconds of the clock for all of them, the second time."""


@dataclass(frozen=True)
class Combinations:
    """The best of some runs: seconds of the clock and of the processor, with so many processes."""

    count: int
    results: dict[str, int]
    wall: dict[int, float]
    processor: dict[int, float]


def measure(folder: Path, runs: int = 3) -> Combinations:
    """Run the command with one process and with one for each CPU, after once to see what comes of it."""
    words = [program("hpcgen"), "matrix", "--json"]
    done = subprocess.run(words, env={**os.environ, **compiled(folder)}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    wall, processor = {}, {}
    for processes in sorted({1, min(len(os.sched_getaffinity(0)), 8)}):
        times = [start(Command([*words, "--processes", str(processes)], compiled(folder))) for _ in range(runs)]
        wall[processes], processor[processes] = min(each[0] for each in times), min(each[1] for each in times)
    results = {
        each: sum(numbers[each] for numbers in found["stacks"].values()) for each in ("renders", "cpu", "refused")
    }
    return Combinations(len(found["combinations"]), results, wall, processor)
