"""Many small pieces of work on a few threads, while the main thread keeps a display alive and hears Ctrl-C."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

TICK_S = 0.1
_GRACE_S = 2.0


def work_all(
    tasks: Sequence[T],
    work: Callable[[T], None],
    jobs: int,
    tick: Callable[[], None],
    stop: threading.Event,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Do ``work`` on each task, ``jobs`` at a time.

    The threads are daemons: one that hangs in the network never keeps an interrupted program alive.

    work: called in a thread; it returns early once ``stop`` is set. What it raises ends all the work.
    tick: called in this thread every tenth of a second.
    on_stop: called once when the work ends early, to wake threads that wait for something.
    The first exception that ``work`` or ``tick`` raised, KeyboardInterrupt among them.
    """
    waiting = deque(tasks)
    raised: list[BaseException] = []

    def run() -> None:
        while not stop.is_set():
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                work(task)
            except BaseException as failure:
                raised.append(failure)
                stop.set()

    threads = [threading.Thread(target=run, daemon=True) for _ in range(min(jobs, len(tasks)))]
    _attend(threads, tick, stop, on_stop)
    if raised:
        raise raised[0]


def _attend(
    threads: Sequence[threading.Thread], tick: Callable[[], None], stop: threading.Event, on_stop: Callable[[], None]
) -> None:
    """Start the threads and wait for them; once ``stop`` is set, only for a moment."""
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not stop.is_set():
                thread.join(TICK_S)
                tick()
    except BaseException:
        stop.set()
        raise
    finally:
        if stop.is_set():
            on_stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(_GRACE_S)
