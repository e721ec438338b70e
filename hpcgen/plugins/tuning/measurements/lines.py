"""Measurements that programs write: one JSON object on each line, so that adding some changes nothing before them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.refusals import explained
from hpcgen.plugins.tuning.measurements.records import Measurement

MAX_BYTES = 256 * 1024 * 1024
_decoder = msgspec.json.Decoder(Measurement)


def read_lines(path: Path, name: str) -> list[Measurement]:
    """The rows of a file, in its order.

    ``name``: what messages call the file. InputError: it cannot be read, or with everything that is wrong in it, by
    line and field.
    """
    try:
        data = read_plain(path, MAX_BYTES)
    except OSError as failure:
        raise InputError(f"this file cannot be read: {failure.strerror}", name) from failure
    if len(data) > MAX_BYTES:
        raise InputError(f"this file is larger than {MAX_BYTES // 2**20} MiB", name, remedy="split it")
    rows = []
    problems = Problems()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        with problems.caught():
            rows.append(_row(line, name, number))
    problems.raise_as(InputError)
    return rows


def _row(line: bytes, name: str, number: int) -> Measurement:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        return convert(InMemory(msgspec.json.decode(line), f"{name}:{number}"), Measurement)
    except (msgspec.DecodeError, RecursionError) as failure:
        # One that was interrupted while it was written.
        raise InputError(
            f"this is not valid JSON: {failure}",
            Position(name, number, 1),
            "one measurement on a line",
            "remove the line",
        ) from failure


def append(path: Path, rows: Iterable[Measurement]) -> int:
    """Add rows to a file, all of them at once; it is made where it is not there. Several processes may do so.

    A row that is there to the last digit stays the only one, so that what was killed can be done again.

    Returns how many were added.

    OutputError: the file cannot be written.
    """
    lines = [msgspec.json.encode(row) for row in rows]
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = os.fstat(file.fileno()).st_size
            known = set(path.read_bytes().split(b"\n"))
            new = [line + b"\n" for line in lines if line not in known]
            try:
                file.write(_new_line(path, before) + b"".join(new))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), before)
                raise
    return len(new)


def _new_line(path: Path, size: int) -> bytes:
    """What separates new rows from a last line that was never finished."""
    if not size:
        return b""
    with path.open("rb") as file:
        file.seek(size - 1)
        return b"" if file.read(1) == b"\n" else b"\n"
