"""The parts of a squashfs that are new: blocks of files, and the tables that say what lies where."""

from __future__ import annotations

import os
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

from msgspec.structs import replace

from hpcgen.images.repacking.layout import (
    BLOCK_DEVICE,
    CHARACTER_DEVICE,
    COMMON,
    DIRECTORY,
    DIRECTORY_INODE,
    ENTRY,
    FIFO,
    FILE,
    FILE_INODE,
    FRAGMENT,
    HEADER,
    LINK,
    LONG,
    LONG_DIRECTORY_INODE,
    LONG_FILE_INODE,
    MAGIC,
    MAJOR,
    METADATA,
    NO_FRAGMENT,
    NO_XATTRS,
    NOWHERE,
    OPTIONS,
    PLAIN,
    PLAIN_METADATA,
    SOCKET,
    ZLIB,
    Data,
    Superblock,
)
from hpcgen.images.repacking.tree import Entry, Tree

_AHEAD = 64
"""Blocks that are compressed before they are written."""
_KINDS = {
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFREG: FILE,
    stat.S_IFLNK: LINK,
    stat.S_IFBLK: BLOCK_DEVICE,
    stat.S_IFCHR: CHARACTER_DEVICE,
    stat.S_IFIFO: FIFO,
    stat.S_IFSOCK: SOCKET,
}


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, 9)


class Blocks:
    """Contents of files, compressed by several threads and written in the order of the files."""

    def __init__(self, stream: BinaryIO, block_size: int, pool: ThreadPoolExecutor, fragments: int) -> None:
        self.stream, self.block_size, self.pool = stream, block_size, pool
        self.before, self.fragments = fragments, list[tuple[int, int]]()
        self._open = bytearray()
        self._waiting: list[tuple[bytes, Future[bytes], Callable[[int, int], None]]] = []
        self._files: list[tuple[Entry, Data, list[tuple[int, int]]]] = []

    def add(self, entry: Entry, path: bytes) -> None:
        """The content of a file; the entry is told where it lies when :meth:`close` has been called."""
        places: list[tuple[int, int]] = []
        size, tail = 0, b""
        with open(path, "rb", opener=_opened) as source:
            while len(block := source.read(self.block_size)) == self.block_size or (block and size):
                size += len(block)
                self._later(block, lambda start, stored: places.append((start, stored)))
            if block:
                tail, size = block, len(block)
        fragment, offset = self._share(tail) if tail else (NO_FRAGMENT, 0)
        # The list of places is filled while blocks are written.
        self._files.append((entry, Data(size, fragment=fragment, offset=offset), places))

    def _share(self, tail: bytes) -> tuple[int, int]:
        if len(self._open) + len(tail) > self.block_size:
            self._close_shared()
        offset = len(self._open)
        self._open += tail
        return self.before + len(self.fragments), offset

    def _close_shared(self) -> None:
        number = len(self.fragments)
        self.fragments.append((0, 0))

        def told(start: int, stored: int) -> None:
            self.fragments[number] = (start, stored)

        self._later(bytes(self._open), told)
        self._open.clear()

    def _later(self, block: bytes, told: Callable[[int, int], None]) -> None:
        self._waiting.append((block, self.pool.submit(_packed, block), told))
        while len(self._waiting) > _AHEAD:
            self._write()

    def _write(self) -> None:
        block, future, told = self._waiting.pop(0)
        packed, start = future.result(), self.stream.tell()
        plain = len(packed) >= len(block)
        self.stream.write(block if plain else packed)
        told(start, len(block) | PLAIN if plain else len(packed))

    def close(self) -> None:
        """Write what waits, and tell every entry that was added where its content lies."""
        if self._open:
            self._close_shared()
        while self._waiting:
            self._write()
        for entry, data, places in self._files:
            start = places[0][0] if places else 0
            entry.data = replace(data, start=start, blocks=tuple(stored for _, stored in places))


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


class _Pieces:
    """A table, compressed in pieces as it grows."""

    def __init__(self) -> None:
        self.written, self.starts = bytearray(), [0]
        self._open = bytearray()

    def place(self) -> tuple[int, int]:
        """Where the next bytes will lie: in which piece, and where in it."""
        return len(self.written), len(self._open)

    def add(self, data: bytes) -> None:
        self._open += data
        while len(self._open) >= METADATA:
            self._close(METADATA)

    def _close(self, size: int) -> None:
        piece, self._open = bytes(self._open[:size]), self._open[size:]
        packed = _packed(piece)
        plain = len(packed) >= len(piece)
        self.written += struct.pack("<H", len(piece) | PLAIN_METADATA if plain else len(packed))
        self.written += piece if plain else packed
        self.starts.append(len(self.written))

    def whole(self) -> bytes:
        if self._open:
            self._close(len(self._open))
        return bytes(self.written)


class Tables:
    """Inodes and folders of a tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.inodes, self.folders = _Pieces(), _Pieces()
        self.ids: dict[int, int] = {}
        self._linked: dict[int, int] = {}
        self.root = self._entry(tree.root, tree.count + 1)

    def _entry(self, entry: Entry, parent: int) -> int:
        """Write an inode, after all that lies below it; the reference to it."""
        if entry.number in self._linked:
            return self._linked[entry.number]
        kind = _KINDS[stat.S_IFMT(entry.about.st_mode)]
        if kind == DIRECTORY:
            kind, rest = self._folder(entry, parent)
        elif kind == FILE:
            kind, rest = _file(entry.data, entry.links)
        elif kind == LINK:
            rest = struct.pack("<2I", entry.links, len(entry.target)) + entry.target
        elif kind in (BLOCK_DEVICE, CHARACTER_DEVICE):
            rest = struct.pack("<2I", entry.links, _device(entry.about.st_rdev))
        else:
            rest = struct.pack("<I", entry.links)
        block, offset = self.inodes.place()
        user, group = (0, 0) if self.tree.all_root else (entry.about.st_uid, entry.about.st_gid)
        seconds = min(max(int(entry.about.st_mtime), 0), 0xFFFFFFFF)
        mode = stat.S_IMODE(entry.about.st_mode)
        common = COMMON.pack(kind, mode, self._id(user), self._id(group), seconds, entry.number)
        self.inodes.add(common + rest)
        reference = block << 16 | offset
        if kind not in (DIRECTORY, DIRECTORY + LONG):
            self._linked[entry.number] = reference
        return reference

    def _id(self, number: int) -> int:
        return self.ids.setdefault(number, len(self.ids))

    def _folder(self, entry: Entry, parent: int) -> tuple[int, bytes]:
        rows = []
        for name, each in sorted(entry.below.items()):
            reference = self._entry(each, entry.number)
            rows.append((name, reference, each.number, _KINDS[stat.S_IFMT(each.about.st_mode)]))
        block, offset = self.folders.place()
        size = 3
        for start, first, group in _groups(rows):
            text = HEADER.pack(len(group) - 1, start, first)
            for name, reference, number, kind in group:
                text += ENTRY.pack(reference & 0xFFFF, number - first, kind, len(name) - 1) + name
            self.folders.add(text)
            size += len(text)
        links = 2 + sum(1 for row in rows if row[3] == DIRECTORY)
        if size <= 0xFFFF:
            return DIRECTORY, DIRECTORY_INODE.pack(block, links, size, offset, parent)
        rest = LONG_DIRECTORY_INODE.pack(links, size, block, parent, 0, offset, 0xFFFFFFFF)
        return DIRECTORY + LONG, rest


Row = tuple[bytes, int, int, int]


def _groups(rows: Sequence[Row]) -> Iterator[tuple[int, int, list[Row]]]:
    """Entries that can stand below one header: their inodes lie in one piece, and have near numbers."""
    group: list[Row] = []
    for row in rows:
        if group:
            first = group[0]
            near = -0x8000 <= row[2] - first[2] < 0x8000
            if len(group) == 256 or row[1] >> 16 != first[1] >> 16 or not near:
                yield first[1] >> 16, first[2], group
                group = []
        group.append(row)
    if group:
        yield group[0][1] >> 16, group[0][2], group


def _file(data: Data, links: int) -> tuple[int, bytes]:
    blocks = struct.pack(f"<{len(data.blocks)}I", *data.blocks)
    if links == 1 and not data.sparse and max(data.start, data.size) < 1 << 32:
        return FILE, FILE_INODE.pack(data.start, data.fragment, data.offset, data.size) + blocks
    numbers = (data.start, data.size, data.sparse, links, data.fragment, data.offset, 0xFFFFFFFF)
    return FILE + LONG, LONG_FILE_INODE.pack(*numbers) + blocks


def _device(number: int) -> int:
    """As Linux writes it to a disk (new_encode_dev)."""
    major, minor = os.major(number), os.minor(number)
    return minor & 0xFF | major << 8 | (minor & ~0xFF) << 12


def write_tables(
    stream: BinaryIO, tree: Tree, block_size: int, flags: int, fragments: Iterable[tuple[int, int]]
) -> None:
    """Everything after the blocks, and the first block of the file."""
    tables = Tables(tree)
    inodes = stream.tell()
    stream.write(tables.inodes.whole())
    folders = stream.tell()
    stream.write(tables.folders.whole())
    shared = [FRAGMENT.pack(start, size, 0) for start, size in fragments]
    shared_at = _table(stream, b"".join(shared)) if shared else NOWHERE
    ids_at = _table(stream, b"".join(struct.pack("<I", each) for each in tables.ids))
    used = stream.tell()
    stream.write(bytes(-used % 4096))
    about = Superblock(
        magic=MAGIC,
        inodes=tree.count,
        made=int(time.time()),
        block_size=block_size,
        fragments=len(shared),
        compression=ZLIB,
        block_log=block_size.bit_length() - 1,
        flags=flags & OPTIONS | NO_XATTRS,
        ids=len(tables.ids),
        major=MAJOR,
        minor=0,
        root=tables.root,
        used=used,
        id_table=ids_at,
        xattr_table=NOWHERE,
        inode_table=inodes,
        directory_table=folders,
        fragment_table=shared_at,
        export_table=NOWHERE,
    )
    stream.seek(0)
    stream.write(about.packed())


def _table(stream: BinaryIO, content: bytes) -> int:
    """A table in pieces, and after them where each begins; the place of that list."""
    pieces = _Pieces()
    pieces.add(content)
    start = stream.tell()
    stream.write(pieces.whole())
    place = stream.tell()
    stream.write(b"".join(struct.pack("<Q", start + each) for each in pieces.starts[:-1]))
    return place
