"""Times of commands and functions, as samples that can be told from noise.

A busy machine makes every wall time longer, so a command's processor time (user and system, from the operating
system's own accounts) is kept beside it, and of both the minimum beside the median.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_KEPT = ("PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True)
class Spread:
    """Minimum, quartiles and number of some measurements, in their own unit."""

    minimum: float
    lower: float
    median: float
    upper: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least two measurements."""
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(min(values), lower, median, upper, len(values))


@dataclass(frozen=True)
class Command:
    """A command to be timed: its words, and variables that differ from this process's."""

    words: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Times:
    """Seconds of each run of one command: on the clock, and of the processor."""

    wall: list[float]
    processor: list[float]


def start(command: Command) -> tuple[float, float]:
    """As :func:`measured`, without the memory."""
    return measured(command)[:2]


def measured(command: Command) -> tuple[float, float, int]:
    """Run a command with its output thrown away; its wall and processor time in seconds, its peak of memory in KiB.

    Python's own settings of this process (such as to write no byte code) do not reach it.

    Raises
    ------
    SystemExit: the command failed.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name in _KEPT}
    environment = {**clean, **command.environment}
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    began = time.perf_counter()
    child = os.posix_spawn(command.words[0], list(command.words), environment, file_actions=actions)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - began
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        raise SystemExit(f"this command failed with {code}: {' '.join(command.words)}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss


def alternating(commands: Mapping[str, Command], rounds: int) -> dict[str, Times]:
    """Run all commands once in each round (A B A B …), so that a change of the machine's load meets all alike."""
    for command in commands.values():
        start(command)  # warm-up: byte code is compiled, files are in memory
    times = {name: Times([], []) for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            wall, processor = start(command)
            times[name].wall.append(wall)
            times[name].processor.append(processor)
    return times


def ratios(times: Times, baseline: Times) -> dict[str, Spread]:
    """How many times as long as the baseline, pair by pair."""
    wall = [mine / other for mine, other in zip(times.wall, baseline.wall, strict=True)]
    processor = [mine / other for mine, other in zip(times.processor, baseline.processor, strict=True)]
    return {"wall": spread(wall), "processor": spread(processor)}


@dataclass(frozen=True)
class CallTimes:
    """Seconds of a function's calls: on the clock, and of the processor in this thread."""

    wall: Spread
    processor: Spread


def in_process(function: Callable[[], object], count: int, budget: float) -> CallTimes:
    """Time a function after two calls to warm up; two when ``budget`` seconds are over, ``count`` at most."""
    for _ in range(2):
        function()
    wall, processor = list[float](), list[float]()
    end = time.perf_counter() + budget
    while len(wall) < count and (len(wall) < 2 or time.perf_counter() < end):
        began, used = time.perf_counter(), time.thread_time()
        function()
        processor.append(time.thread_time() - used)
        wall.append(time.perf_counter() - began)
    return CallTimes(spread(wall), spread(processor))
