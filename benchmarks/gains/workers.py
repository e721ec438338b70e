"""One process for each variant, which stays; turns go round, and each is compared with the first of its round."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from hpcgen.plugins.tuning.bench.intervals import Interval, typical
from hpcgen.plugins.tuning.bench.pressure import waiting
from hpcgen.plugins.tuning.bench.program import MARK

READY_S, TURN_S = 600.0, 300.0
"""How long a worker may take to begin, and for a turn."""


class Start(msgspec.Struct, frozen=True):
    """How a variant is started: its words, and variables that differ from this process's (None: unset)."""

    words: Sequence[str]
    environment: Mapping[str, str | None] = {}


class Ready(msgspec.Struct, frozen=True):
    """What a worker says first: seconds of a step, and what the first steps gave."""

    step_seconds: float
    numbers: list[float] = []


class Turn(msgspec.Struct, frozen=True):
    """Seconds of a step, on the clock and of the processors, and the most bytes the process has had."""

    wall: float
    cpu: float
    memory: int = 0


class NoWorkerError(Exception):
    """A variant cannot be measured; why."""


class Worker:
    """The process of one variant. It computes when it is asked alone."""

    def __init__(self, start: Start) -> None:
        changed = {name: value for name, value in {**os.environ, **start.environment}.items() if value is not None}
        self.process = subprocess.Popen(
            list(start.words),
            env=changed,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
        self.last: list[str] = []
        self.ready = msgspec.convert(self._answer(READY_S), Ready)
        # ld.so goes on without a library that it does not find.
        if missing := [line for line in self.last if "cannot be preloaded" in line]:
            self.__exit__()
            raise NoWorkerError(missing[0])

    def turn(self, steps: int) -> Turn:
        """Compute so many steps.

        Between turns the process is stopped: threads that wait in a loop would take the processors of the others.
        """
        os.killpg(self.process.pid, signal.SIGCONT)
        try:
            return self._turned(steps)
        finally:
            os.killpg(self.process.pid, signal.SIGSTOP)

    def _turned(self, steps: int) -> Turn:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{steps}\n".encode())
            self.process.stdin.flush()
        except OSError:
            raise NoWorkerError(f"it ended: {' | '.join(self.last[-3:])}") from None
        return msgspec.convert(self._answer(TURN_S), Turn)

    def _answer(self, seconds: float) -> Any:
        assert self.process.stdout is not None
        until = time.monotonic() + seconds
        mark = MARK.encode()
        while time.monotonic() < until:
            if not select.select([self.process.stdout], [], [], 1.0)[0]:
                continue
            line = self.process.stdout.readline()
            if not line:
                raise NoWorkerError(f"it ended: {' | '.join(self.last[-3:])}")
            if line.startswith(mark):
                said = msgspec.json.decode(line.removeprefix(mark))
                if "cannot" in said:
                    raise NoWorkerError(said["cannot"])
                return said
            if line.strip():
                self.last.append(line.decode("utf-8", "replace").strip())
        raise NoWorkerError(f"it said nothing for {seconds:.0f} s")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Measured(msgspec.Struct):
    """What became of the variants of one row: turns in the order of the rounds, or why there are none.

    ``waited``: the share of the time before each round in which others waited for CPUs; ``load``: the machine's.
    """

    turns: dict[str, list[Turn]] = {}
    ready: dict[str, Ready] = {}
    refused: dict[str, str] = {}
    waited: list[float] = []
    load: list[float] = []

    def gain(self, name: str, first: str, by: str = "wall") -> Interval:
        """How many times as fast as another, round by round: the median, and the interval of their geometric mean."""
        pairs = zip(self.turns[first], self.turns[name], strict=True)
        return typical([getattr(base, by) / getattr(own, by) for base, own in pairs])

    def off(self, name: str, first: str) -> float | None:
        """How far the results of the first steps are from another's, by the largest of that; None without any."""
        own, base = self.ready[name].numbers, self.ready[first].numbers
        largest = max(map(abs, base), default=0.0)
        if not largest or len(own) != len(base):
            return None
        return max(abs(a - b) for a, b in zip(own, base, strict=True)) / largest


def measure(starts: Mapping[str, Start], rounds: int, seconds: float, repeats: int = 1) -> Measured:
    """Start all variants and let them compute in turns, every other round in the opposite order.

    Parameters
    ----------
    seconds: about how long a turn takes.
    repeats: how often the processes are started anew; the rounds are divided among these.
    """
    found = Measured(turns={name: [] for name in starts})
    for _ in range(repeats):
        workers: dict[str, Worker] = {}
        try:
            for name, start in starts.items():
                if name in found.refused:
                    continue
                try:
                    workers[name] = Worker(start)
                    found.ready.setdefault(name, workers[name].ready)
                except NoWorkerError as why:
                    found.refused[name] = str(why)
            _rounds(workers, found, max(1, rounds // repeats), seconds)
        finally:
            for worker in workers.values():
                worker.__exit__()
    for name in found.refused:
        del found.turns[name]
    return found


def _rounds(workers: Mapping[str, Worker], found: Measured, rounds: int, seconds: float) -> None:
    steps = {name: max(1, round(seconds / worker.ready.step_seconds)) for name, worker in workers.items()}
    for worker in workers.values():
        worker.turn(1)
    for number in range(rounds):
        found.waited.append(waiting() or 0.0)
        found.load.append(os.getloadavg()[0])
        for name in steps if number % 2 == 0 else reversed(steps):
            found.turns[name].append(workers[name].turn(steps[name]))
