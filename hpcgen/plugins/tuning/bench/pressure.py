"""How much other programs want this machine's CPUs, before something is measured on it."""

from __future__ import annotations

import time
from pathlib import Path

BUSY = 0.1
"""A quiet machine stays far below this share, and above it single starts differ by more than the usual 7 %."""

LOOK_S = 1.0
GLANCE_S = 0.3
"""How long each start is preceded by a look."""

_FILE = Path("/proc/pressure/cpu")


def busy_warning(file: Path = _FILE, seconds: float = LOOK_S) -> str:
    """What to say where others wait for CPUs although this program starts nothing; "" on a quiet machine.

    It takes ``seconds``. Where Linux does not tell, which is so before 4.20 and without PSI, nothing is said.
    """
    share = waiting(file, seconds)
    if share is None or share < BUSY:
        return ""
    return f"other programs wait for this machine's CPUs {share:.0%} of the time: measure when it is quiet"


def waiting(file: Path = _FILE, seconds: float = GLANCE_S) -> float | None:
    """The share of the next ``seconds``, in which this program does nothing, where a program waits for a CPU.

    None where Linux does not tell.
    """
    before = _waited(file)
    if before is None:
        return None
    began = time.monotonic()
    time.sleep(seconds)
    after = _waited(file)
    return min(((after or before) - before) / 1e6 / (time.monotonic() - began), 1.0)


def _waited(file: Path) -> int | None:
    """Microseconds since the boot in which a program waited. Source: Linux, Documentation/accounting/psi.rst"""
    try:
        some = file.read_text("ascii").splitlines()[0].split()
        return int(some[-1].removeprefix("total="))
    except (OSError, IndexError, ValueError):
        return None
