"""Programs that hpcgen starts: found, or an error; read line by line; never left running."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from hpcgen.core.errors import MissingToolError

GRACE_S = 10.0
"""How long a program may take to end after it was asked to, before it is killed."""

SOON_S = 1.0
"""The same for one that does harm."""

_PIECE, _WAITING = 64 * 1024, 64
"""Bytes that are read at once, and how many such pieces wait to be handed over, before the program has to."""


class EndSoon(Exception):
    """Raised by a callback if a program has to end within moments, because it does harm while it runs."""


def require_program(program: str, purpose: str, remedy: str = "") -> str:
    """The full path of a program; MissingToolError that says what it is for and where it comes from."""
    found = shutil.which(program)
    if found is None:
        raise MissingToolError(f"{program} is not on PATH; it is needed to {purpose}", remedy=remedy)
    return found


def stream(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    on_tick: Callable[[], None] | None = None,
    on_update: Callable[[str], None] | None = None,
    tick_s: float = 0.2,
    keeps: Sequence[int] = (),
    before: Callable[[], None] | None = None,
) -> int:
    """Run a program and hand over each line of its stdout and stderr, in order, as it appears.

    What it prints is never kept as a whole: a program that prints faster than its lines are taken has to wait, and a
    line longer than :data:`~hpcgen.core.support.processes.LONGEST_LINE` is cut, which is said at its end.

    Returns the exit status; negative for a signal, and then what the program had started is ended too: it would hold
    the output open for as long as it runs. If this process is interrupted, or a callback raises, the program and all
    that it started are ended before the exception goes on.

    env: the whole environment; this process's own if None.
    on_tick: called at least every ``tick_s`` seconds, to keep a display alive.
    keeps: open files that the program has open, too.
    before: called in the child before the program starts.
    on_update: called with what a program writes over again in a line that has not ended: its progress.
    """
    pieces = _Pieces()
    process: subprocess.Popen[bytes] | None = None
    try:
        with _signals_deferred():
            process = subprocess.Popen(
                list(argv),
                env=None if env is None else dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=keeps,
                preexec_fn=before,
            )
        threading.Thread(target=pieces.read, args=(process,), daemon=True).start()
        _hand_over(pieces, on_line, on_update or (lambda text: None), _watching(process, on_tick), tick_s)
        return process.wait()
    except BaseException as why:
        if process is not None:
            end(process, SOON_S if isinstance(why, EndSoon) else GRACE_S)
        raise
    finally:
        pieces.closed.set()


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """A signal that comes while a program is being started waits until it is known which program that is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, frame: pending.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for missed in pending:
        signal.raise_signal(missed)


def _watching(process: subprocess.Popen[bytes], on_tick: Callable[[], None] | None) -> Callable[[], None]:
    """What is done every moment: end what a program that was killed has left running, then the caller's own."""
    ended = False

    def tick() -> None:
        nonlocal ended
        if not ended and (process.poll() or 0) < 0:
            ended = True
            _kill_group(process)
        if on_tick is not None:
            on_tick()

    return tick


class _Pieces:
    """What a program prints, as it was read: a few pieces wait, the last of them is None."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self.closed = threading.Event()
        """Nobody takes them any more."""

    def read(self, process: subprocess.Popen[bytes]) -> None:
        """Read all that it prints, until there is an end."""
        assert process.stdout is not None
        while not self.closed.is_set():
            piece = os.read(process.stdout.fileno(), _PIECE)
            self._put(piece or None)
            if not piece:
                return

    def _put(self, piece: bytes | None) -> None:
        while not self.closed.is_set():
            with contextlib.suppress(queue.Full):
                return self.waiting.put(piece, timeout=1.0)


def _hand_over(
    pieces: _Pieces,
    on_line: Callable[[str], None],
    on_update: Callable[[str], None],
    on_tick: Callable[[], None],
    tick_s: float,
) -> None:
    lines, ticked = Lines(), time.monotonic()
    while True:
        piece: bytes | None = b""
        with contextlib.suppress(queue.Empty):
            piece = pieces.waiting.get(timeout=tick_s)
        for line in lines.take(piece) if piece is not None else lines.rest():
            if isinstance(line, Update):
                on_update(line)
            else:
                on_line(line)
        if piece is None:
            return
        # Of a program that prints without a pause, too.
        if time.monotonic() - ticked >= tick_s:
            on_tick()
            ticked = time.monotonic()


def end(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """End a program that was started in a session of its own, and its children: asked first, then killed.

    ``grace_s``: seconds that it has each time.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    _kill_group(process)
    process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill processes that a program left running in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM, which batch systems send at the time limit, is met like Ctrl-C: what was begun is undone.

    In another thread than the main one, which alone gets signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# Lines out of what a program prints, piece by piece: each as long as the user or a parser may want, and no longer.

LONGEST_LINE = 1024 * 1024
"""Bytes that are kept of one line; what a stranger's program prints may have no end."""


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(line: str) -> str:
    """A program's line without what would steer a terminal."""
    return _CONTROL.sub("", line)


class Update(str):
    """What stands in a line that goes on: a carriage return came after it, and no line break yet."""


class Lines:
    """The lines of one program.

    ``longest``: bytes that are kept of a line; of the others it says how many they were.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._kept = self._cut = 0

    def take(self, piece: bytes) -> Iterator[str]:
        """The lines that end in these bytes, and an :class:`Update` if one goes on that is written over."""
        first, *rest = piece.split(b"\n")
        self._add(first)
        for each in rest:
            yield self._end()
            self._add(each)
        # The last of those that came at once is enough for the user.
        last = rest[-1] if rest else first
        if b"\r" in last:
            yield Update(_text(last[-self._longest :]).rpartition("\r")[2])

    def rest(self) -> Iterator[str]:
        """The last line, where no line break came after it."""
        if self._kept or self._cut:
            yield self._end()

    def _add(self, part: bytes) -> None:
        kept = part[: self._longest - self._kept]
        self._begun += [kept] if kept else []
        self._kept += len(kept)
        self._cut += len(part) - len(kept)

    def _end(self) -> str:
        text = _text(b"".join(self._begun))
        if self._cut:
            text += f" … ({self._cut} more bytes of this line were left out)"
        self._begun, self._kept, self._cut = [], 0, 0
        return text


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").rstrip("\r")


# This Python, started again, never with the present folder on its path: a file there may be a stranger's.
#
# ``-m`` and ``-c`` put it first (``python -P`` does not, since 3.11), so a folder named hpcgen, or a msgspec.py,
# would be imported in the place of the installed one.

NOT_HERE = "import sys; sys.path[:] = filter(None, sys.path)"
"""The first line of a program's text, for any Python."""


def own_module(module: str, *words: str) -> list[str]:
    """The command that runs a module of this installation."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module, *words]
    return own_program(f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)", *words)


def own_program(text: str, *words: str) -> list[str]:
    """The command that runs a program, a line of simple statements, with all that is installed."""
    return [sys.executable, "-c", f"{NOT_HERE}; {text}", *words]
