"""Programs whose short answer is wanted: bounded in size and time, in the C locale, never left behind."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from hpcgen.core.errors import InputError

ANSWER_BYTES = 64 * 1024 * 1024
TIMEOUT_S = 300.0


class CommandOutput(msgspec.Struct, frozen=True):
    """What a program said: its exit status, stdout, and the end of stderr."""

    status: int
    output: bytes
    complaint: str

    @property
    def last_line(self) -> str:
        """The last line of stderr that says something."""
        lines = [line.strip() for line in self.complaint.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"


def ask(
    argv: Sequence[str],
    *,
    limit: int = ANSWER_BYTES,
    before: Callable[[], None] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = TIMEOUT_S,
) -> CommandOutput:
    """Run a program to its end.

    limit: bytes of stdout; more is an InputError, because only an image made to do harm has that much.
    before: called in the child before the program starts.
    env: variables besides the environment.
    seconds: how long it may take.
    InputError: too long an answer, or none within that time.
    """
    with tempfile.TemporaryFile() as complaint:
        process = subprocess.Popen(
            list(argv),
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaint,
            preexec_fn=before,
        )
        with _ended(process, argv[0], seconds):
            assert process.stdout is not None
            output = process.stdout.read(limit + 1)
            if len(output) > limit:
                raise InputError(
                    f"{argv[0]} printed more than {limit} bytes",
                    expected="a file of a kit",
                    remedy="the image has no kit from hpcgen there; rebuild it",
                )
            status = process.wait()
        size = complaint.seek(0, os.SEEK_END)
        complaint.seek(max(0, size - 8192))
        return CommandOutput(status, output, complaint.read().decode("utf-8", "replace"))


@contextmanager
def piped(argv: Sequence[str], seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose stdout is read piece by piece; it has ended when this is left, and what it complains is dropped.

    InputError: it took longer.
    """
    process = subprocess.Popen(
        list(argv),
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with _ended(process, argv[0], seconds):
        yield process
        process.stdout.close()  # type: ignore[union-attr]
        process.wait()


@contextmanager
def _ended(process: subprocess.Popen[bytes], name: str, seconds: float = TIMEOUT_S) -> Iterator[None]:
    """Never leave a process behind; InputError if it had to be killed for taking longer."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    if late.is_set():
        raise InputError(
            f"{name} did not answer within {seconds:.0f} s",
            remedy=f"run {name} yourself: its storage may be locked by another process, or its file system may hang",
        )
