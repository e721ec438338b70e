"""What a shared library says of itself: the little of ELF that detection needs, bounded and without trust.

Only 64-bit little-endian libraries, as x86_64 and aarch64 have them. Source: elf(5), and the GNU symbol versions in
the Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import msgspec

from hpcgen.machine.detect.tree import Blob

_MAX_TABLE = 16 * 1024 * 1024
_MAX_ENTRIES = 4096
_MAX_SYMBOLS = 200_000
_MAX_SCAN = 256 * 1024 * 1024
_PIECE = 4 * 1024 * 1024
_OVERLAP = 4096
_VERSION = re.compile(r"(GLIBC|GLIBCXX)_(\d+\.\d+(?:\.\d+)?)")
_RELR = "GLIBC_ABI_DT_RELR"
"""A need without a number, of libraries with packed relocations: glibc has it since 2.36 (its NEWS)."""

_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _SYMTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 1, 5, 6, 10, 14, 15, 29
_VERNEED, _VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF


class Library(msgspec.Struct, frozen=True):
    """A shared library.

    soname: the name that programs ask for.
    needed: names of the libraries that it asks for.
    runpath: folders that it names for them.
    glibc: the newest symbol version of the C library that it needs. glibcxx: of GCC's C++ library.
    strings: the text at symbols that were asked for.
    """

    soname: str
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    glibc: str | None = None
    glibcxx: str | None = None
    strings: dict[str, str] = {}


def read_library(blob: Blob, symbols: tuple[str, ...] = ()) -> Library | None:
    """What a library says; None for anything that is not one, or is broken.

    ``symbols``: names of exported text constants whose text is wanted.
    """
    try:
        return _Reader(blob).library(symbols)
    except (struct.error, ValueError, LookupError):
        return None


def find_text(blob: Blob, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The first match of a pattern (of less than 4096 bytes) in a file's first 256 MiB."""
    for offset in range(0, min(blob.size, _MAX_SCAN), _PIECE):
        if match := pattern.search(blob.at(offset, _PIECE + _OVERLAP)):
            return match
    return None


class _Reader:
    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        head = blob.at(0, 64)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            raise ValueError("not a 64-bit little-endian ELF file")
        table, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        if size != 56 or count > 128:
            raise ValueError("an unusual table of segments")
        segments = [struct.unpack("<IIQQQQQQ", blob.at(table + number * size, size)) for number in range(count)]
        self.loads = [(kind[3], kind[2], kind[5]) for kind in segments if kind[0] == _LOAD]
        self.dynamic = [(kind[2], kind[5]) for kind in segments if kind[0] == _DYNAMIC]
        self.names = b""

    def library(self, symbols: tuple[str, ...]) -> Library | None:
        if not self.dynamic:
            return None
        tags = list(self._tags(*self.dynamic[0]))
        last = dict(tags)
        self.names = (
            self.blob.at(self._offset(last[_STRTAB]), min(last[_STRSZ], _MAX_TABLE)) if _STRTAB in last else b""
        )
        paths = [self._name(value) for tag, value in tags if tag in (_RPATH, _RUNPATH)]
        newest = self._newest(last)
        return Library(
            soname=self._name(last[_SONAME]) if _SONAME in last else "",
            needed=tuple(self._name(value) for tag, value in tags if tag == _NEEDED),
            runpath=tuple(path for text in paths for path in text.split(":") if path),
            glibc=newest.get("GLIBC"),
            glibcxx=newest.get("GLIBCXX"),
            strings=dict(self._strings(last, symbols)) if symbols else {},
        )

    def _tags(self, offset: int, size: int) -> Iterator[tuple[int, int]]:
        content = self.blob.at(offset, min(size, 16 * _MAX_ENTRIES))
        for place in range(0, len(content) - 15, 16):
            tag, value = struct.unpack_from("<QQ", content, place)
            if tag == 0:
                return
            yield tag, value

    def _offset(self, address: int) -> int:
        for start, offset, size in self.loads:
            if start <= address < start + size:
                return int(address - start + offset)
        raise ValueError("an address in no segment")

    def _name(self, place: int) -> str:
        end = self.names.find(b"\0", place, place + 4096)
        if place >= len(self.names) or end < 0:
            raise ValueError("a name outside the table")
        text = self.names[place:end].decode("ascii")
        if not text.isprintable():
            raise ValueError("a name that cannot be printed")
        return text

    def _newest(self, tags: dict[int, int]) -> dict[str, str]:
        """The newest of the versions that the library needs of others, by what they begin with."""
        found: dict[str, list[list[int]]] = {}
        place = self._offset(tags[_VERNEED]) if _VERNEED in tags else 0
        for _ in range(min(tags.get(_VERNEEDNUM, 0), _MAX_ENTRIES)):
            _, count, _, first, following = struct.unpack("<HHIII", self.blob.at(place, 16))
            auxiliary = place + first
            for _ in range(min(count, _MAX_ENTRIES)):
                _, _, _, name, further = struct.unpack("<IHHII", self.blob.at(auxiliary, 16))
                version = self._name(name)
                if match := _VERSION.fullmatch("GLIBC_2.36" if version == _RELR else version):
                    # Of the C library's versions the first two numbers count: 2.2.5 is asked for by all.
                    numbers = [int(part) for part in match[2].split(".")]
                    found.setdefault(match[1], []).append(numbers[:2] if match[1] == "GLIBC" else numbers)
                if not further:
                    break
                auxiliary += further
            if not following:
                break
            place += following
        return {prefix: ".".join(map(str, max(versions))) for prefix, versions in found.items()}

    def _strings(self, tags: dict[int, int], wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Texts at symbols. The table's length is nowhere told; linkers put the names behind it."""
        if _SYMTAB not in tags:
            return
        size = min(max(tags[_STRTAB] - tags[_SYMTAB], 0), 24 * _MAX_SYMBOLS)
        table = self.blob.at(self._offset(tags[_SYMTAB]), size)
        places = {self.names.find(b"\0" + name.encode() + b"\0") + 1: name for name in wanted}
        places.pop(0, None)
        for entry in range(0, len(table) - 23, 24):
            name, _, _, _, value, length = struct.unpack_from("<IBBHQQ", table, entry)
            if name in places and value:
                text = self.blob.at(self._offset(value), min(length, 256)).split(b"\0", 1)[0].decode("utf-8", "replace")
                if text.isprintable():
                    yield places[name], text
