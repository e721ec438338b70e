"""What of a finished squashfs is asked: its folders by name, and whether a file has the same content.

The file may be a stranger's: all that it says of places and sizes is checked before it is used, and nothing is read
that is not in it. What it says of a file's content counts where it was compared, byte by byte.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import OrderedDict

from hpcgen.images.repacking.layout import (
    COMMON,
    DIRECTORY,
    DIRECTORY_INODE,
    ENTRY,
    FILE,
    FILE_INODE,
    FRAGMENT,
    HEADER,
    LONG,
    LONG_DIRECTORY_INODE,
    LONG_FILE_INODE,
    MAGIC,
    MAJOR,
    METADATA,
    NO_FRAGMENT,
    NOWHERE,
    PLAIN,
    PLAIN_METADATA,
    SUPERBLOCK,
    ZLIB,
    Data,
    Superblock,
    Unsuitable,
    inflated,
)

_KEPT = 64
"""Shared blocks, and blocks of metadata, that are kept unpacked."""
_LARGEST, _LONGEST, _MOST = 1 << 20, 1 << 26, 1 << 22
"""Bytes of a block, bytes of a folder's names, and how many blocks are shared, at most."""


class Finished:
    """A squashfs that begins at ``offset`` in an open file.

    Raises
    ------
    Unsuitable: it is none, it is damaged, or it is compressed by something else than zlib.
    """

    def __init__(self, descriptor: int, offset: int = 0) -> None:
        self.descriptor, self.offset = descriptor, offset
        size = os.fstat(descriptor).st_size - offset
        try:
            self.about = about = Superblock(*SUPERBLOCK.unpack(os.pread(descriptor, SUPERBLOCK.size, offset)))
        except struct.error:
            raise Unsuitable("the finished image is no squashfs") from None
        if about.magic != MAGIC or about.major != MAJOR:
            raise Unsuitable("the finished image is no squashfs of version 4")
        if about.compression != ZLIB:
            raise Unsuitable("the finished image is not compressed with gzip")
        tables = (SUPERBLOCK.size, about.inode_table, about.directory_table, about.used, size)
        if list(tables) != sorted(tables) or about.block_size >> about.block_log != 1:
            raise Unsuitable("the first block of the finished image is damaged")
        if about.fragments > _MOST:
            raise Unsuitable("the finished image has too many shared blocks")
        if not METADATA // 2 <= about.block_size <= _LARGEST:
            raise Unsuitable("the blocks of the finished image have an unknown size")
        self._blocks: OrderedDict[tuple[int, int], tuple[bytes, int]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, start: int, length: int) -> bytes:
        """Bytes from a place in the file system."""
        if not 0 <= start <= start + length <= self.about.used:
            raise Unsuitable("the finished image names a place that it does not have")
        found = os.pread(self.descriptor, length, self.offset + start)
        if len(found) != length:
            raise Unsuitable("the finished image ends too soon")
        return found

    def root(self) -> int:
        """The reference to the inode of ``/``."""
        return self.about.root

    def folder(self, reference: int) -> dict[bytes, int]:
        """References to what lies in a folder, by name; nothing where it is none."""
        kind, at = self._inode(reference)
        if kind == DIRECTORY:
            block, _, size, offset, _ = DIRECTORY_INODE.unpack(self._metadata(at, DIRECTORY_INODE.size)[0])
        elif kind == DIRECTORY + LONG:
            _, size, block, _, _, offset, _ = LONG_DIRECTORY_INODE.unpack(
                self._metadata(at, LONG_DIRECTORY_INODE.size)[0]
            )
        else:
            return {}
        return self._names(block, offset, size - 3)

    def _names(self, block: int, offset: int, left: int) -> dict[bytes, int]:
        if left > _LONGEST:
            raise Unsuitable("a folder of the finished image has too many names")
        at = (self.about.directory_table + block, offset)
        found: dict[bytes, int] = {}
        while left > 0:
            text, at = self._metadata(at, HEADER.size)
            count, start, _ = HEADER.unpack(text)
            left -= HEADER.size
            for _ in range(min(count, 255) + 1):
                text, at = self._metadata(at, ENTRY.size)
                inside, _, _, length = ENTRY.unpack(text)
                name, at = self._metadata(at, length + 1)
                left -= ENTRY.size + length + 1
                found[name] = start << 16 | inside
        return found

    def data(self, reference: int, size: int) -> Data | None:
        """Where the content of a file of that many bytes lies; None if it is no file, or has another size."""
        kind, at = self._inode(reference)
        if kind == FILE:
            text, at = self._metadata(at, FILE_INODE.size)
            start, fragment, offset, length = FILE_INODE.unpack(text)
            sparse = 0
        elif kind == FILE + LONG:
            text, at = self._metadata(at, LONG_FILE_INODE.size)
            start, length, sparse, _, fragment, offset, _ = LONG_FILE_INODE.unpack(text)
        else:
            return None
        if length != size:
            return None
        count = size // self.about.block_size
        if fragment == NO_FRAGMENT and size % self.about.block_size:
            count += 1
        text, _ = self._metadata(at, 4 * count)
        return Data(size, start, struct.unpack(f"<{count}I", text), fragment, offset, sparse)

    def same(self, data: Data, path: bytes) -> bool:
        """Whether a file of this machine has that content; it may be asked by several threads."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            at, place = 0, data.start
            for stored in data.blocks:
                length = min(self.about.block_size, data.size - at)
                if os.pread(descriptor, length, at) != self._block(place, stored, length):
                    return False
                at, place = at + length, place + (stored & ~PLAIN)
            if data.fragment == NO_FRAGMENT:
                return True
            tail = self._shared(data.fragment)[data.offset : data.offset + data.size - at]
            return os.pread(descriptor, data.size - at, at) == tail
        finally:
            os.close(descriptor)

    def _block(self, start: int, stored: int, length: int) -> bytes:
        """A block of a file, which has ``length`` bytes when it is unpacked."""
        size = stored & ~PLAIN
        if size == 0:
            return bytes(length)
        if start < SUPERBLOCK.size or start + size > self.about.inode_table or size > 2 * _LARGEST:
            raise Unsuitable("the finished image names a block that it does not have")
        found = self.read(start, size)
        return found if stored & PLAIN else inflated(found, self.about.block_size)

    def fragment(self, number: int) -> tuple[int, int]:
        """Where a block that files share begins, and its size as it is stored, with :data:`PLAIN`."""
        if number >= self.about.fragments or self.about.fragment_table == NOWHERE:
            raise Unsuitable("the finished image names a shared block that it does not have")
        each = METADATA // FRAGMENT.size
        (block,) = struct.unpack("<Q", self.read(self.about.fragment_table + number // each * 8, 8))
        text, _ = self._metadata((block, number % each * FRAGMENT.size), FRAGMENT.size)
        start, size, _ = FRAGMENT.unpack(text)
        return start, size

    def _shared(self, number: int) -> bytes:
        key = (-1, number)
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key][0]
        start, size = self.fragment(number)
        found = self._block(start, size, self.about.block_size)
        self._keep(key, (found, 0))
        return found

    def _inode(self, reference: int) -> tuple[int, tuple[int, int]]:
        """The kind of an inode, and the place of what follows that."""
        at = (self.about.inode_table + (reference >> 16), reference & 0xFFFF)
        text, at = self._metadata(at, COMMON.size)
        return COMMON.unpack(text)[0], at

    def _metadata(self, at: tuple[int, int], length: int) -> tuple[bytes, tuple[int, int]]:
        """Bytes of a table that is compressed in pieces, and the place after them."""
        start, offset = at
        found = b""
        while True:
            block, following = self._piece(start)
            part = block[offset : offset + length - len(found)]
            found += part
            if len(found) == length:
                return found, (start, offset + len(part))
            if following <= start or len(block) != METADATA:
                raise Unsuitable("a table of the finished image is damaged")
            start, offset = following, 0

    def _piece(self, start: int) -> tuple[bytes, int]:
        key = (0, start)
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        (size,) = struct.unpack("<H", self.read(start, 2))
        length = size & ~PLAIN_METADATA
        text = self.read(start + 2, length)
        found = (text if size & PLAIN_METADATA else inflated(text, METADATA), start + 2 + length)
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[int, int], found: tuple[bytes, int]) -> None:
        with self._lock:
            self._blocks[key] = found
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
