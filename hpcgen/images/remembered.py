"""What was read of an image, kept in the user's cache until the image is another one.

Large images take a minute to be read, and each start asks for the same. A file is the same while its path, inode, size
and times are; an image of a store while its digest is. A folder has no such mark, and is read each time. What is kept
counts only in a private folder of the user, so that nobody else's word is taken for what was read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from hpcgen._version import __version__
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.errors import OutputError
from hpcgen.core.support.below import folder_of
from hpcgen.core.support.hashing import sha256_of
from hpcgen.core.support.writing import write_file
from hpcgen.images.reference import ImageReference

Kept = TypeVar("Kept")
PART = "facts"
"""The folder of the cache."""
_MOST_BYTES = 64 * 1024 * 1024
_MOST_KEPT = 64


def remembered(image: ImageReference, what: str, kind: type[Kept], read: Callable[[], Kept], digest: str = "") -> Kept:
    """What ``read`` finds in an image, or what it found before in the very same one.

    ``what``: which question of an image it answers. ``kind``: what an answer is. ``digest``: of an image in a store,
    where it was just asked for.
    """
    before = _key(image, what, digest)
    if before and (known := _found(before, kind)) is not None:
        return known
    answer = read()
    # What changed while it was read is neither the one nor the other.
    if before and _key(image, what) == before:
        _keep(before, answer)
    return answer


def _key(image: ImageReference, what: str, digest: str = "") -> str:
    """A hash that tells this image, the question and these readers from all others; "" where nothing does."""
    if image.image_kind.stored:
        same = digest or image.image_kind.digest(image.name)
    else:
        try:
            told = Path(image.name).stat()
        except OSError:
            return ""
        same = f"{told.st_dev} {told.st_ino} {told.st_size} {told.st_mtime_ns} {told.st_ctime_ns}"
        same = same if stat.S_ISREG(told.st_mode) else ""
    return sha256_of(f"{_readers()}\n{what}\n{image.kind}\n{image.name!a}\n{same}") if same else ""


@lru_cache(maxsize=1)
def _readers() -> str:
    """The release, and in a checkout the state of what reads."""
    files = sorted((str(each), each.stat()) for each in Path(__file__).parent.rglob("*.py"))
    return "\n".join([__version__, *(f"{name} {told.st_size} {told.st_mtime_ns}" for name, told in files)])


def _found(key: str, kind: type[Kept]) -> Kept | None:
    """An answer that was kept; None where there is none, or where it is damaged or not this user's alone."""
    with contextlib.suppress(OSError, ValueError, RuntimeError), folder_of(cache_folder(), f"{PART}/{key}") as folder:
        if _private(folder):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(key, flags, dir_fd=folder), "rb") as stream:
                told = os.fstat(stream.fileno())
                if stat.S_ISREG(told.st_mode) and told.st_uid == os.geteuid():
                    data = stream.read(_MOST_BYTES)
                    if data[:64].decode() == sha256_of(data[64:]):
                        return msgspec.msgpack.decode(data[64:], type=kind)
    return None


def _keep(key: str, answer: object) -> None:
    """Keep an answer where that can be done, and as many others as are usual."""
    # A name in it may be no text that can be written.
    with contextlib.suppress(OSError, OutputError, RuntimeError, UnicodeEncodeError):
        data, place = msgspec.msgpack.encode(answer), cache_folder(PART)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        with folder_of(place.parent, f"{PART}/{key}") as folder:
            if not _private(folder):
                return
        write_file(place / key, sha256_of(data).encode() + data)
        kept = sorted(place.iterdir(), key=lambda each: each.lstat().st_mtime, reverse=True)
        for old in kept[_MOST_KEPT:]:
            old.unlink(missing_ok=True)


def _private(folder: int) -> bool:
    """Whether an open folder is the user's own, and nobody else can look into it."""
    told = os.fstat(folder)
    return told.st_uid == os.geteuid() and not told.st_mode & 0o077
