"""The file of a study, Optuna's journal: its lock, and what a process that was killed left of it."""

from __future__ import annotations

import glob
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

GRACE_S = 30
"""After how long without a change the lock of a process that was killed is broken."""


def lock(place: str) -> Any:
    """Optuna's lock; what the operating system refuses is said as that, also where it is given back."""
    from optuna.storages.journal import JournalFileOpenLock

    class StudyLock(JournalFileOpenLock):
        def release(self) -> None:
            try:
                super().release()
            except RuntimeError as failure:
                if isinstance(failure.__context__, OSError):
                    raise failure.__context__ from None
                raise

    return StudyLock(place, grace_period=GRACE_S)


def mend(path: Path) -> None:
    """Cut off a last line that was never finished, as by a full disk: what is added would be part of it.

    Another process may be about to finish it, so it has a moment. Locks that were never quite given back go too.
    """
    for left in path.parent.glob(f"{glob.escape(path.name)}.lock*.rename"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > 2 * GRACE_S:
                left.unlink()
    if not path.exists() or not path.stat().st_size:
        return
    for _ in range(20):
        text = path.read_bytes()
        if text.endswith(b"\n"):
            return
        time.sleep(0.1)
    whole = text.rfind(b"\n") + 1
    with path.open("r+b") as file:
        if file.seek(0, 2) == len(text):
            file.truncate(whole)
