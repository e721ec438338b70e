"""How much of an image's file is written: as the program tells, else by the size of what grows."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from hpcgen.builders.progress import BuildProgress
from hpcgen.core.support.units import size

_PERCENT = re.compile(r"\] +\d+/\d+ +(\d{1,3})%\s*$")
"""The end of a progress bar of mksquashfs."""
LOOK_S = 1.0
"""Seconds between two looks at the files."""


class WriteProgress:
    """Tells a build's progress how much is there.

    Parameters
    ----------
    growing: folders and patterns of the files that grow; those older than the build belong to others.
    """

    def __init__(self, progress: BuildProgress, growing: Iterable[tuple[Path, str]]) -> None:
        self.progress, self.growing = progress, list(growing)
        self._began = time.time()
        self._looked = 0.0
        self._told = False

    def update(self, text: str) -> None:
        """A program has written something over again in its line."""
        found = _PERCENT.search(text)
        if found is not None and self.progress.writes():
            self._told = True
            self.progress.written = f"{found[1]} %"

    def look(self) -> None:
        """Measure the files, where no program tells more."""
        if self._told or time.monotonic() - self._looked < LOOK_S or not self.progress.writes():
            return
        self._looked = time.monotonic()
        found = (path for folder, pattern in self.growing for path in folder.glob(pattern))
        count = max((_size(path, self._began) for path in found), default=0)
        self.progress.written = size(count) if count else ""


def _size(path: Path, since: float) -> int:
    try:
        facts = path.stat()
    except OSError:
        return 0
    ours = facts.st_uid == os.geteuid() and facts.st_mtime >= since
    return facts.st_size if ours else 0
