"""Programs that hpcgen starts end, and what they started with them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hpcgen.support.processes import interruptible, stream


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
