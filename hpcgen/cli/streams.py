"""The standard streams of the process: closed ones, and what cannot be written to the others."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from hpcgen.core.support.refusals import STDOUT

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FLAGS = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


class _Results(io.FileIO):
    """Stdout: what it does not take is told from what other files do not."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as failure:
            failure.filename = STDOUT
            raise


class _Notes(io.FileIO):
    """Stderr: that nobody can have notes, warnings and errors changes nothing of what is done."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Give the process the streams that it was started without, and those whose failures are known.

    Another file would get the number of a closed one, and what is printed. Nothing can be written to stdout then, as
    before.
    """
    for number, flags in enumerate(_FLAGS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _text(_Results(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Notes(2, "w", closefd=False), sys.stderr)


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    """The stream by which text is written, as the one that Python made."""
    if not isinstance(before, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw))
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        before.encoding,
        before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )


def close_streams() -> None:
    """Hand on what is left in them."""
    for stream in (sys.stdout, sys.stderr):
        # Who reads may have gone away, and `main` has closed stderr then.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
