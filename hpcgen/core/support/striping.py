"""Large files on Lustre lie on several of its servers, so that all nodes of a job do not read them from one.

How many, and from which size on: docs.nersc.gov, "Lustre", "NERSC File Striping Recommendations": 8 for a file of 1 to
10 GB, below 1 GB the file system's own. Lustre itself takes fewer where it has fewer.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COUNT = 8
LARGE = 1_000_000_000
"""In bytes."""
_LONGEST_S = 3600


def stripe(path: Path, expected: int | None = None) -> bool:
    """Spread a file that is there, or make it empty so that what is written to it will be; whether that was done.

    Nothing happens on other file systems, or where Lustre's program ``lfs`` is missing or refuses.

    ``expected``: bytes that will be written to a file that is not there.
    """
    lfs = shutil.which("lfs")
    there = path.is_file()
    size = path.stat().st_size if there else expected or 0
    if lfs is None or size < LARGE or not _succeeds(lfs, "getstripe", "-d", str(path.parent)):
        return False
    return _succeeds(lfs, "migrate" if there else "setstripe", "-c", str(COUNT), str(path))


def _succeeds(*words: str) -> bool:
    try:
        done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_LONGEST_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
