"""Programs that hpcgen starts end, and what they started with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.support.processes import LONGEST_LINE, EndSoon, interruptible, stream


def test_a_killed_program_is_reported_at_once(tmp_path: Path) -> None:
    """Its child holds the output open; it is ended, too, rather than waited for."""
    lines: list[str] = []
    started = time.monotonic()
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo begun; kill -9 $$"
    assert stream(["sh", "-c", script], lines.append) == -9
    assert time.monotonic() - started < 20
    assert lines == ["begun"]
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while running(child):
        assert time.monotonic() < deadline, "the child still runs"
        time.sleep(0.1)


def running(process: int) -> bool:
    """Whether it is there and has not ended; one that has may wait for its parent to look."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_program_that_ends_well_leaves_its_children_alone(tmp_path: Path) -> None:
    """Engines leave helpers behind on purpose (podman's pause process)."""
    script = f"sleep 60 > /dev/null 2>&1 & echo $! > {tmp_path}/child"
    assert stream(["sh", "-c", script], lambda line: None) == 0
    child = int((tmp_path / "child").read_text())
    assert running(child)
    os.kill(child, 9)


def test_a_signal_during_the_start_leaves_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a program takes a while on a loaded machine; a batch system's SIGTERM may come right then."""
    started: list[int] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt), interruptible():
        stream(["sleep", "60"], lambda line: None)
    assert started
    assert not running(started[0])


HOLDER = """
import resource, sys, time
from hpcgen.core.support.processes import stream
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lengths = []
def take(line):
    if not lengths:
        time.sleep(0.5)
    lengths.append(len(line))
stream(["sh", "-c", sys.argv[1]], take)
print(len(lengths), max(lengths), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("script", "lines"),
    [("head -c 100000000 /dev/zero", 1), (f"yes {'x' * 6000} | head -n 15000", 15000)],
    ids=["one line", "many"],
)
def test_what_a_program_prints_is_not_kept(script: str, lines: int) -> None:
    """Neither a line without an end, nor those that wait while one is looked at."""
    done = subprocess.run([sys.executable, "-c", HOLDER, script], capture_output=True, text=True, check=True)
    found, longest, more_mb = map(int, done.stdout.split())
    assert found == lines and longest < LONGEST_LINE + 100
    assert more_mb < 30, done.stdout


def test_a_program_that_prints_without_a_pause_is_watched_and_ended() -> None:
    """It has no quiet moment, takes no notice of Ctrl-C, and nobody takes what it has printed."""

    class Enough(EndSoon):
        pass

    def tick() -> None:
        raise Enough

    began, threads = time.monotonic(), threading.active_count()
    with pytest.raises(Enough):
        stream(["sh", "-c", "trap '' INT TERM; while :; do echo x; done"], lambda line: None, on_tick=tick)
    assert time.monotonic() - began < 8
    deadline = time.monotonic() + 5
    while threading.active_count() > threads:
        assert time.monotonic() < deadline, "what it prints is still read"
        time.sleep(0.05)
