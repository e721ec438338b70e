"""Many cases in few processes, each process with bounded memory, each case with bounded time of the processor."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hpcgen.core.errors import HpcgenError

SECONDS, WAITING_S = 10.0, 300.0
"""Of the processor; on the clock, for one that waits for something that never comes."""
MEMORY = 1 << 30


class TooLongError(BaseException):
    """A case that takes longer than it may."""


class Outcome:
    """What became of cases.

    ``counts`` by word; ``failures``: what ended as a bug, with the case; ``seconds`` and ``memory`` (bytes): the worst.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.seconds, self.memory = 0.0, 0

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {word}" for word, number in sorted(self.counts.items()))
        return f"{counts}; slowest {self.seconds:.2f} s, most memory {self.memory >> 20} MiB"

    def add(self, other: dict[str, Any]) -> None:
        self.counts.update(other["counts"])
        self.failures += other["failures"]
        self.seconds, self.memory = max(self.seconds, other["seconds"]), max(self.memory, other["memory"])


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLongError

    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITING_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def attempt(numbers: Iterable[int], one: Callable[[int], object], outcome: Outcome) -> None:
    """Each must end, soon, in a result or in an error of hpcgen's own."""
    for number in numbers:
        began = time.process_time()
        try:
            with _in_time():
                word = one(number) or "accepted"
        except HpcgenError as error:
            word = "refused"
            if not str(error):
                outcome.failures.append(f"{number}: an error without a word")
        except (Exception, TooLongError):
            word = "failed"
            last = "".join(traceback.format_exc().splitlines(keepends=True)[-12:])
            outcome.failures.append(f"{number}: {last}")
        outcome.counts[str(word)] += 1
        outcome.seconds = max(outcome.seconds, time.process_time() - began)


def in_processes(numbers: Sequence[int], one: Callable[[int], object], processes: int = 2) -> Outcome:
    """The cases, shared by forked processes that may have ``MEMORY`` bytes of address space each."""
    shares = [numbers[start::processes] for start in range(processes)]
    children = [_start(share, one) for share in shares]
    whole = Outcome()
    for share, (child, end) in zip(shares, children, strict=True):
        with os.fdopen(end, "rb") as pipe:
            said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            whole.failures.append(f"the process for {share[:1]} … {share[-1:]} ended with {status}")
            continue
        whole.add(json.loads(said))
    return whole


def _start(share: Sequence[int], one: Callable[[int], object]) -> tuple[int, int]:
    end, start = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(start)
        return child, end
    status = 1
    try:
        os.close(end)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        outcome = Outcome()
        attempt(share, one, outcome)
        outcome.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        with os.fdopen(start, "wb") as pipe:
            pipe.write(json.dumps(vars(outcome)).encode())
        status = 0
    finally:
        os._exit(status)
