"""The format squashfs 4.0 with zlib, as far as an image of files needs it.

Numbers are little-endian, without gaps. Source: Linux, fs/squashfs/squashfs_fs.h and squashfs.rst in
Documentation/filesystems.
"""

from __future__ import annotations

import struct
import zlib

import msgspec

MAGIC, ZLIB, MAJOR = 0x73717368, 1, 4
SUPERBLOCK = struct.Struct("<5I6H8Q")
NOWHERE = 0xFFFFFFFFFFFFFFFF
"""The place of a table that is not there."""
METADATA = 8192
"""Bytes of inodes or directories that are compressed together."""
NO_FRAGMENT = 0xFFFFFFFF
PLAIN, PLAIN_METADATA = 1 << 24, 1 << 15
"""A bit of a block's size: it is not compressed."""
OPTIONS, NO_XATTRS = 0x400, 0x200
"""Flags: what the compressor was told stands before the first block; no file has extended attributes."""

DIRECTORY, FILE, LINK, BLOCK_DEVICE, CHARACTER_DEVICE, FIFO, SOCKET = range(1, 8)
LONG = 7
"""What a kind of inode has more in its larger form."""
COMMON = struct.Struct("<4H2I")
DIRECTORY_INODE, LONG_DIRECTORY_INODE = struct.Struct("<2I2HI"), struct.Struct("<4I2HI")
FILE_INODE, LONG_FILE_INODE = struct.Struct("<4I"), struct.Struct("<3Q4I")
FRAGMENT = struct.Struct("<Q2I")
HEADER, ENTRY = struct.Struct("<3I"), struct.Struct("<HhHH")


class Unsuitable(Exception):
    """Why an image cannot be written from the blocks of an older one; it is written whole then."""


class Superblock(msgspec.Struct, frozen=True, array_like=True):
    """The first 96 bytes."""

    magic: int
    inodes: int
    made: int
    block_size: int
    fragments: int
    compression: int
    block_log: int
    flags: int
    ids: int
    major: int
    minor: int
    root: int
    used: int
    id_table: int
    xattr_table: int
    inode_table: int
    directory_table: int
    fragment_table: int
    export_table: int

    def packed(self) -> bytes:
        """As the file has it."""
        return SUPERBLOCK.pack(*msgspec.structs.astuple(self))


class Data(msgspec.Struct, frozen=True):
    """Where the content of a file lies.

    Parameters
    ----------
    size: in bytes.
    start: of its first block, from the beginning of the file system.
    blocks: the size of each as it is stored, with :data:`PLAIN`; 0 for one of zeros alone.
    fragment, offset: the block that it shares with other files for its end, and where in it; :data:`NO_FRAGMENT`.
    sparse: bytes of it that are zeros and not stored.
    """

    size: int
    start: int = 0
    blocks: tuple[int, ...] = ()
    fragment: int = NO_FRAGMENT
    offset: int = 0
    sparse: int = 0


EMPTY = Data(0)
"""A file without content."""


def inflated(data: bytes, limit: int) -> bytes:
    """At most ``limit`` bytes of what was compressed; Unsuitable where it is damaged, or more."""
    try:
        program = zlib.decompressobj()
        result = program.decompress(data, limit)
        if program.decompress(program.unconsumed_tail, 1):
            raise Unsuitable("a block of the finished image is larger than it may be")
    except zlib.error as failure:
        raise Unsuitable(f"a block of the finished image is damaged: {failure}") from None
    return result
