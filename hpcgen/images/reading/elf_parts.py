"""What readers need of programs beside :mod:`hpcgen.machine.detect.elf`: sections, interpreter, processor, notes.

Source: elf(5); the x86-64 psABI, "Program Property Note": the levels of instructions that a file asks for.
"""

from __future__ import annotations

import re
import struct

import msgspec

from hpcgen.images.folder import machine_of
from hpcgen.machine.detect.elf import find_text
from hpcgen.machine.detect.tree import Blob

_MOST_SECTIONS, _MOST_SEGMENTS = 4096, 128
_NAMES = 1024 * 1024
_INTERPRETER, _PROPERTY = 3, 0x6474E553
_ISA_NEEDED = 0xC0008002
_LEVELS = {2: "x86-64-v2", 4: "x86-64-v3", 8: "x86-64-v4"}


class ProgramFacts(msgspec.Struct, frozen=True):
    """A program or library: its processor as dpkg calls it, its loader, the level of x86-64 it asks for or ""."""

    machine: str
    loader: str = ""
    level: str = ""


def program_facts(blob: Blob) -> ProgramFacts | None:
    """What a program says; None for anything else. Of one of another word length only the processor is told."""
    head = blob.at(0, 64)
    machine = machine_of(head)
    if not machine:
        return None
    loader = level = ""
    try:
        for kind, offset, size in _segments(blob, head):
            if kind == _INTERPRETER:
                loader = blob.at(offset, min(size, 4096)).split(b"\0")[0].decode("ascii", "replace")
            elif kind == _PROPERTY:
                level = _level(blob.at(offset, min(size, 4096)))
    except (struct.error, ValueError):
        pass
    return ProgramFacts(machine, loader if loader.isprintable() else "", level)


def _segments(blob: Blob, head: bytes) -> list[tuple[int, int, int]]:
    """Kind, offset and size of each."""
    if head[4:6] != b"\x02\x01" or len(head) < 64:
        return []
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    if size != 56:
        return []
    rows = (struct.unpack("<IIQQQQQQ", blob.at(table + n * size, size)) for n in range(min(count, _MOST_SEGMENTS)))
    return [(row[0], row[2], row[5]) for row in rows]


def _level(note: bytes) -> str:
    """The highest level in a note of properties."""
    place, end = 16, len(note)
    highest = 0
    while place + 8 <= end:
        kind, size = struct.unpack_from("<II", note, place)
        if kind == _ISA_NEEDED and size == 4 and place + 12 <= end:
            highest = struct.unpack_from("<I", note, place + 8)[0]
        place += 8 + size + (-size % 8)
    return next((name for bit, name in sorted(_LEVELS.items(), reverse=True) if highest & bit), "")


def section(blob: Blob, name: str) -> tuple[int, int] | None:
    """Offset and size of a section; None where there is none, or the table of sections is damaged."""
    head = blob.at(0, 64)
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
        return None
    try:
        (table,) = struct.unpack_from("<Q", head, 40)
        size, count, names = struct.unpack_from("<HHH", head, 58)
        if size != 64 or names >= count:
            return None
        rows = blob.at(table, size * min(count, _MOST_SECTIONS))
        each = [struct.unpack_from("<IIQQQQ", rows, place) for place in range(0, len(rows) - size + 1, size)]
        texts = blob.at(each[names][4], min(each[names][5], _NAMES))
        wanted = name.encode() + b"\0"
        found = next((row for row in each if texts.startswith(wanted, row[0])), None)
    except (struct.error, IndexError):
        return None
    if found is None or found[4] > blob.size:
        return None
    return found[4], min(found[5], blob.size - found[4])


def text_in(pattern: bytes) -> _Text:
    """An examination that gives the first text in a file that fits: its first group that matched."""
    return _Text(re.compile(pattern))


class _Text:
    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern

    def __call__(self, blob: Blob) -> str | None:
        match = find_text(blob, self._pattern)
        if match is None:
            return None
        text = next((each for each in match.groups() if each), b"").decode("ascii", "replace")
        return text if text.isprintable() else None
