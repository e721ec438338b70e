"""Read files of an image that lies in a folder, as a process inside would see them.

A symbolic link is followed from the image's own root: ``/etc/x -> /usr/lib/x`` means the image's file, never the
host's. Run as a program (``python -m hpcgen.images.folder ROOT PATH...``) it prints what it read, for folders that
only a user namespace can see.
"""

# Paths of an image are text that pathlib must not tidy up.
# ruff: noqa: PTH115, PTH118
from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

import msgspec

from hpcgen.errors import InputError

MAX_FILE = 16 * 1024 * 1024
"""Bytes that one file of an image may have to be read; a large plan has less than one."""
MAX_LINKS = 40


def read_folder(root: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Files below ``root`` by their path in the image; what is missing or no regular file is left out.

    Raises
    ------
    InputError: a file larger than MAX_FILE, or one that may not be read.
    """
    found = {}
    for path in paths:
        place = _resolve(root, path)
        if place is not None and (data := _read(place, path)) is not None:
            found[path] = data
    return found


def _resolve(root: str, path: str) -> str | None:
    """The host's path of an image's path, every link followed inside the image; None if there is nothing."""
    waiting = [part for part in path.split("/") if part][::-1]
    done: list[str] = []
    links = 0
    while waiting:
        part = waiting.pop()
        if part in (".", ""):
            continue
        if part == "..":
            del done[-1:]
            continue
        place = os.path.join(root, *done, part)
        try:
            target = os.readlink(place) if stat.S_ISLNK(os.lstat(place).st_mode) else None
        except (OSError, ValueError):
            return None
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            return None
        if target.startswith("/"):
            done = []
        waiting.extend(target.split("/")[::-1])
    return os.path.join(root, *done)


def _read(place: str, path: str) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(place).st_mode):
            return None
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except OSError as failure:
        raise InputError(f"the image's {path} cannot be read: {failure.strerror}") from failure
    if len(data) > MAX_FILE:
        raise too_large(path)
    return data


def too_large(path: str) -> InputError:
    """The error for a file that no kit has."""
    return InputError(f"the image's {path} has more than {MAX_FILE} bytes", expected="a file of a kit")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(read_folder(sys.argv[1], sys.argv[2:])))
