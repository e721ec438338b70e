"""Which process measures a trial, and whether it still does: a killed one cannot say that it is gone.

On the same machine the process is looked up. For another machine only heartbeats tell, which each process adds to
the study now and then.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from hpcgen.core.model.fields import Record
from hpcgen.core.support.repeating import repeated

BEAT_S = 30.0
"""Heartbeat interval, in seconds."""

STALE_S = 150.0
"""After so many seconds without one, a process of another machine is considered dead: some heartbeats may come late."""


class Worker(Record, frozen=True):
    """A process: its machine, as its boot and its numbering of processes; its number and when that began."""

    host: str
    place: str
    pid: int
    began: str

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.host}, process {self.pid}"


def this_worker() -> Worker:
    """The process that asks."""
    host = socket.gethostname()
    return Worker(host, _place(host), os.getpid(), _began(os.getpid()) or "")


def _place(host: str) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{host} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{host} {os.getpid()}"


def _began(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None of one that is not there, or has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the program's name, which may have anything in it.
    state, *others = text.rpartition(")")[2].split()
    return None if state in "ZX" else others[18]


def is_alive(worker: Worker, seen: float, now: float) -> bool:
    """Whether a process still runs. ``seen``: its last sign of life, in seconds since 1970."""
    if worker.place == this_worker().place:
        return _began(worker.pid) == worker.began
    return now - seen < STALE_S


def beating(beat: Callable[[float], None], seconds: float = BEAT_S) -> AbstractContextManager[None]:
    """Call ``beat`` with the time now and then, until the end of the block."""
    return repeated(lambda: beat(time.time()), seconds)
