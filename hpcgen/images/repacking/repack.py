"""A folder written as a squashfs that takes over compressed blocks of a finished image, for files that are the same.

Most of the time that mksquashfs needs is compression. Here a file is compared with the one of the same path in the
finished image, which takes a tenth of that, and only what differs is compressed. The result is one squashfs like any
other, and says nothing of the older one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import msgspec

from hpcgen.images.repacking.layout import NO_FRAGMENT, PLAIN, SUPERBLOCK, Data, Unsuitable
from hpcgen.images.repacking.reading import Finished
from hpcgen.images.repacking.tree import Entry, Tree
from hpcgen.images.repacking.writing import Blocks, write_tables

ENOUGH = 0.7
"""The part of a finished image's blocks that has to be of use; with less the new one is smaller written whole."""
_PIECE = 1 << 20
_AT_ONCE = 512


class Repacked(msgspec.Struct, frozen=True):
    """What was written: bytes of compressed blocks that were taken over, and of those that are new."""

    kept: int
    new: int


def repack(
    folder: Path,
    target: Path,
    finished: Path,
    offset: int = 0,
    *,
    without: Collection[str] = (),
    added: Mapping[str, int] = MappingProxyType({}),
    all_root: bool = False,
    block_size: int | None = None,
    threads: int | None = None,
) -> Repacked:
    """Write the squashfs.

    Parameters
    ----------
    folder: what it is made of.
    finished: the file with the older squashfs, which begins at ``offset``. It may be a stranger's.
    without: paths below the folder that are left out.
    added: empty files and folders that are to be in the new one: paths in it and their modes, with the kind.
    all_root: whether everything belongs to root inside.
    block_size: in bytes, the older one's if None.
    threads: how many work at once, as many as this process may use cores if None.

    Raises
    ------
    Unsuitable: the older one is damaged, has other blocks, or too little in common with the folder.
    OSError: a file cannot be read or written.
    """
    descriptor = os.open(finished, os.O_RDONLY | os.O_CLOEXEC)
    try:
        old = Finished(descriptor, offset)
        if block_size not in (None, old.about.block_size):
            raise Unsuitable(f"the blocks of the finished image have {old.about.block_size} bytes, not {block_size}")
        more = {os.fsencode(name): mode for name, mode in added.items()}
        tree = Tree(os.fsencode(folder), [os.fsencode(each) for each in without], all_root, more)
        with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool, open(target, "wb") as stream:
            changed = _take_over(old, tree, pool)
            kept = _used(old, tree)
            if kept < ENOUGH * (old.about.inode_table - SUPERBLOCK.size):
                raise Unsuitable("too little of the finished image is as it was")
            _copy(old, stream)
            begin = stream.tell()
            blocks = Blocks(stream, old.about.block_size, pool, old.about.fragments)
            for path, entry in changed:
                blocks.add(entry, path)
            blocks.close()
            new = stream.tell() - begin
            shared = [*map(old.fragment, range(old.about.fragments)), *blocks.fragments]
            write_tables(stream, tree, old.about.block_size, old.about.flags, shared)
    finally:
        os.close(descriptor)
    return Repacked(kept, new)


def _take_over(old: Finished, tree: Tree, pool: ThreadPoolExecutor) -> list[tuple[bytes, Entry]]:
    """Tell every file that is as it was where its content lies; the others, with their paths."""
    folders = _Folders(old)
    changed = []
    asked: list[tuple[bytes, Entry, Data]] = []
    for path, inside, entry in tree.files():
        above, _, name = inside.rpartition(b"/")
        found = folders(above).get(name)
        data = old.data(found, entry.about.st_size) if found is not None else None
        if data is None:
            changed.append((path, entry))
        else:
            asked.append((path, entry, data))
    for start in range(0, len(asked), _AT_ONCE):
        some = asked[start : start + _AT_ONCE]
        for (path, entry, data), same in zip(
            some, pool.map(lambda each: old.same(each[2], each[0]), some), strict=True
        ):
            if same:
                entry.data = data
            else:
                changed.append((path, entry))
    return changed


class _Folders:
    """The folders of the older squashfs by their paths, each read once."""

    def __init__(self, old: Finished) -> None:
        self.old = old
        self.known: dict[bytes, dict[bytes, int]] = {b"": old.folder(old.root())}

    def __call__(self, path: bytes) -> dict[bytes, int]:
        if path not in self.known:
            above, _, name = path.rpartition(b"/")
            reference = self(above).get(name)
            self.known[path] = {} if reference is None else self.old.folder(reference)
        return self.known[path]


def _used(old: Finished, tree: Tree) -> int:
    """Bytes of the older one's blocks that files of the tree have; a shared one counts whole."""
    taken = [entry.data for _, _, entry in tree.files() if entry.data.size]
    shared = {data.fragment for data in taken if data.fragment != NO_FRAGMENT}
    starts = {data.start: sum(each & ~PLAIN for each in data.blocks) for data in taken if data.blocks}
    return sum(starts.values()) + sum(old.fragment(each)[1] & ~PLAIN for each in shared)


def _copy(old: Finished, stream: BinaryIO) -> None:
    """All up to the tables, so that blocks keep their places."""
    at = 0
    while at < old.about.inode_table:
        piece = old.read(at, min(_PIECE, old.about.inode_table - at))
        stream.write(piece)
        at += len(piece)
