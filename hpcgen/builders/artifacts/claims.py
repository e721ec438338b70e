"""Whoever is about to compile a block says so in the store: others that want the same wait, rather than compile it too.

The claim is a file that its owner touches. Any shared file system has that; locks are not known to all nodes on all of
them. Where one on the same machine holds no lock on its file any more, its process is gone, which is seen at once.
Two that compile the same nonetheless do no harm to each other.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hpcgen.core.support.leftovers import lock
from hpcgen.core.support.refusals import explained
from hpcgen.core.support.repeating import repeated
from hpcgen.core.support.units import duration


class ClaimTimes(msgspec.Struct, frozen=True):
    """Seconds: between two looks at another's claim, two touches of an own one, two lines for who waits; a claim that
    nobody touched for ``gone_s`` is no longer one (nodes may see a touch a minute late); the longest to wait."""

    look_s: float = 2.0
    touch_s: float = 20.0
    tell_s: float = 600.0
    gone_s: float = 300.0
    longest_s: float = 12 * 3600.0


@contextmanager
def claimed(path: Path, what: str, tell: Callable[[str], None], times: ClaimTimes | None = None) -> Iterator[None]:
    """Have the claim of that name, once whoever has it now is done, or gone, or took too long.

    ``what``: that is compiled, for the lines that say who is waited for. OutputError: the folder cannot be written.
    """
    times = times or ClaimTimes()
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mine = _taken(path, what, tell, times)
    try:
        with repeated(lambda: os.utime(mine), times.touch_s):
            yield
    finally:
        with suppress(OSError):
            # Another may have waited too long, and taken it over.
            if os.path.samestat(path.stat(), os.fstat(mine)):
                path.unlink()
        os.close(mine)


def _taken(path: Path, what: str, tell: Callable[[str], None], times: ClaimTimes) -> int:
    """The open file of a claim, which is ours now."""
    begun = moved = time.monotonic()
    told, seen = -times.tell_s, (0, 0)
    while True:
        with suppress(FileExistsError):
            mine = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            lock(mine)
            os.write(mine, platform.node().encode())
            return mine
        owner, now = _owner(path)
        clock = time.monotonic()
        if now is None:
            continue
        if now != seen:
            seen, moved = now, clock
        if clock - moved > times.gone_s or clock - begun > times.longest_s:
            with suppress(FileNotFoundError):
                path.unlink()
            continue
        if clock - begun - told >= times.tell_s:
            told = clock - begun
            after = f", for {duration(told)} now" if told > times.look_s else ""
            tell(f"waiting for {what}, which is being compiled on {owner}{after}")
        time.sleep(times.look_s)


def _owner(path: Path) -> tuple[str, tuple[int, int] | None]:
    """On which machine a claim was made, and its state; None where there is no claim any more.

    That of a process of this machine that is gone is removed.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "", None
    except PermissionError:
        facts = path.lstat()
        return "another user's machine", (facts.st_ino, facts.st_mtime_ns)
    try:
        # Its owner locks it before the name is in it.
        name = os.read(descriptor, 256).decode("utf-8", "replace")
        if name == platform.node() and lock(descriptor) is True:
            if os.fstat(descriptor).st_nlink:
                path.unlink()
            return name, None
        facts = os.fstat(descriptor)
        return name if name.isprintable() else "another machine", (facts.st_ino, facts.st_mtime_ns)
    finally:
        os.close(descriptor)
