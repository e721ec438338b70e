"""Files of a bundle: hashed by several threads, taken from another bundle, swept of what does not belong."""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

from hpcgen.core.support.hashing import CHUNK, hash_file, hash_stream, open_plain
from hpcgen.core.support.placing import sync_folder
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.supply.net.part import DiskError, PartialFile
from hpcgen.supply.net.workers import work_all

K = TypeVar("K")
Opener = Callable[[], BinaryIO]


def hash_all(
    files: Mapping[K, tuple[Opener, int]], title: str, jobs: int = 2, watch: Watch | None = None
) -> dict[K, tuple[str, int] | OSError]:
    """sha256 and length of many files at once; what could not be read has the error instead.

    ``files``: how each is opened, and its size in bytes. ``title``: what is shown, such as ``checking``.
    """
    watch = watch or Watch()
    progress = TransferProgress(title, len(files), sum(size for _, size in files.values()))
    found: dict[K, tuple[str, int] | OSError] = {}
    stop = threading.Event()

    def work(key: K) -> None:
        progress.begin(str(key))

        def moved(count: int) -> None:
            progress.moved(str(key), count)
            if stop.is_set():
                raise InterruptedError

        try:
            with files[key][0]() as stream:
                found[key] = hash_stream(stream, moved)
        except OSError as failure:
            found[key] = failure
        progress.end(str(key))

    if not files:
        return {}
    watch.begin(progress)
    try:
        work_all(list(files), work, jobs, watch.tick, stop)
    finally:
        watch.end()
    return found


def fitting(folder: Path, wants: Mapping[str, str], title: str, jobs: int, watch: Watch) -> set[str]:
    """Which of some files, relative path → sha256, are in a folder and as they should be."""
    there: dict[str, tuple[Opener, int]] = {}
    for path in wants:
        try:
            size = (folder / path).lstat().st_size
        except OSError:
            continue
        there[path] = (lambda path=path: open_plain(folder / path), size)  # type: ignore[misc]
    hashes = hash_all(there, title, jobs, watch)
    return {path for path, found in hashes.items() if isinstance(found, tuple) and found[0] == wants[path]}


def take(source: Path, target: Path, work: Path, sha256: str, link: bool = True) -> bool:
    """Put a file of another bundle into this one, as a hard link where that works, else as a copy.

    Returns False if the source is not what it should be; then nothing has changed.

    work: a folder on the disk of ``target``, for what is not yet checked.
    link: a hard link will do; else it is a copy, since the source is somebody's own.
    """
    part = PartialFile(work / f"taken-{secrets.token_hex(6)}")
    try:
        if not (link and _linked(source, part.path)):
            with open_plain(source) as stream:
                part.begin(0)
                while data := stream.read(CHUNK):
                    part.write(data)
            found = part.hasher.hexdigest()
        else:
            found, _ = hash_file(part.path)
        if found != sha256:
            part.forget()
            return False
        part.finish(target)
        return True
    except OSError:
        part.forget()
        return False


def _linked(source: Path, target: Path) -> bool:
    """Whether a hard link could be made; not to what is itself no regular file."""
    try:
        if not stat.S_ISREG(source.lstat().st_mode):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target, follow_symlinks=False)
        return True
    except FileNotFoundError:
        raise
    except OSError:
        return False


def walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder but folders: relative path and what it is, links not followed; sorted."""
    pending = [""]
    while pending:
        at = pending.pop()
        with os.scandir(folder / at) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                path = f"{at}/{entry.name}" if at else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                else:
                    yield path, entry.stat(follow_symlinks=False)


def sweep(folder: Path, keep: Collection[str]) -> list[str]:
    """Remove everything below a folder that is not to be kept, empty folders too; what was removed."""
    removed = []
    for path, _ in list(walk(folder)):
        if path not in keep:
            (folder / path).unlink()
            removed.append(path)
    for at, _, _ in os.walk(folder, topdown=False):
        if Path(at) != folder and not os.listdir(at):
            Path(at).rmdir()
    return removed


def write_through(path: Path, data: bytes) -> None:
    """Write a file of a bundle: whole or not at all, on the disk for good."""
    aside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(aside, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except OSError as failure:
        raise DiskError(failure) from failure
