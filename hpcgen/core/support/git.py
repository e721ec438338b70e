"""git, started to be read: it asks nobody anything, and what goes wrong is told in lines that can be shown."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from hpcgen.core.secret_rules import public
from hpcgen.core.support.units import harmless

_SHOWN = 300


class GitFailure(Exception):
    """git ended with an error, or not in time.

    ``said``: the lines that it wrote about it, as they were; none where it did not end in time. ``timed_out``: whether
    that is so.
    """

    def __init__(self, said: Sequence[str], *, timed_out: bool = False) -> None:
        super().__init__("; ".join(said))
        self.said, self.timed_out = said, timed_out

    def line(self, at: int) -> str:
        """One of the lines, 0 for the first and -1 for the last, without secrets and control characters."""
        return harmless(public(self.said[at], _SHOWN))


def git_output(words: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> bytes:
    """What git prints.

    words: with the program first.
    environment: the caller's, which decides what settings count and what may be reached; it is made silent here.
    GitFailure: it ended with an error, or did not end in time.
    """
    silent = {**environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            list(words), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False, env=silent
        )
    except subprocess.TimeoutExpired:
        raise GitFailure((), timed_out=True) from None
    if done.returncode != 0:
        said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        raise GitFailure(said or [f"exit status {done.returncode}"])
    return done.stdout
