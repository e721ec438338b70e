"""Writes libraries with nothing but what :mod:`hpcgen.machine.detect.elf` reads: captured trees are small."""

from __future__ import annotations

import struct

from hpcgen.machine.detect.elf import Library

_MACHINES = {"x86_64": 62, "aarch64": 183}
_HEADER = 64 + 2 * 56


class _Names:
    """A table of names."""

    def __init__(self) -> None:
        self.content = b"\0"

    def __call__(self, text: str) -> int:
        place = len(self.content)
        self.content += text.encode("ascii") + b"\0"
        return place


def stub(library: Library, text: bytes = b"", architecture: str = "x86_64") -> bytes:
    """A library with this name, these needs and these texts, and no code.

    Parameters
    ----------
    text: what else is in it, for those who search it for a version.

    >>> stub(Library("libmpi.so.12"))[:4]
    b'\\x7fELF'
    """
    names = _Names()
    tags = [(1, names(name)) for name in library.needed]
    if library.soname:
        tags.append((14, names(library.soname)))
    if library.runpath:
        tags.append((29, names(":".join(library.runpath))))
    needs = _needs(names, library.glibc) if library.glibc else b""
    places = [(names(symbol), value.encode() + b"\0") for symbol, value in library.strings.items()]
    # 5 tags more: names, their size, symbols, needs and their number; and the end.
    dynamic_size = 16 * (len(tags) + 6)
    needs_at = _HEADER + dynamic_size
    symbols_at = needs_at + len(needs)
    names_at = symbols_at + 24 * (len(places) + 1)
    values_at = names_at + len(names.content)
    symbols, values = bytes(24), b""
    for name, value in places:
        symbols += struct.pack("<IBBHQQ", name, 0x11, 0, 1, values_at + len(values), len(value))
        values += value
    tags += [(5, names_at), (10, len(names.content)), (6, symbols_at)]
    tags += [(0x6FFFFFFE, needs_at), (0x6FFFFFFF, 1)] if needs else []
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags).ljust(dynamic_size, b"\0")
    body = dynamic + needs + symbols + names.content + values + text
    return _header(_HEADER + len(body), dynamic_size, architecture) + body


def _header(size: int, dynamic_size: int, architecture: str) -> bytes:
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 3, _MACHINES[architecture], 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, _HEADER, _HEADER, _HEADER, dynamic_size, dynamic_size, 8)
    return identity + head + load + dynamic


def _needs(names: _Names, glibc: str) -> bytes:
    """One need: a symbol version of the C library."""
    entry = struct.pack("<HHIII", 1, 1, names("libc.so.6"), 16, 0)
    return entry + struct.pack("<IHHII", 0, 0, 2, names(f"GLIBC_{glibc}"), 0)
