"""Read files of an image that lies in a folder, as a process inside would see them.

A symbolic link is followed from the image's own root: ``/etc/x -> /usr/lib/x`` means the image's file, never the
host's. Run as a program (``python -m hpcgen.images.folder ROOT PATH...``) it prints what it read, for folders that
only a user namespace can see.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.tree import MachineTree

MAX_FILE = 16 * 1024 * 1024
"""Bytes that one file of an image may have to be read; a large plan has less than one."""
MAX_LINKS = 40


def read_folder(root: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
    """Files below ``root`` by their path in the image; what is missing or no regular file is left out.

    InputError: a file of more than ``most`` bytes, or one that may not be read.
    """
    tree = MachineTree(root)
    found = {}
    for path in paths:
        real = tree.real(path)
        if real is not None and (data := _read(tree.place(real), path, most)) is not None:
            found[path] = data
    return found


def _read(place: str, path: str, most: int) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(place).st_mode):
            return None
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            data = stream.read(most + 1)
    except OSError as failure:
        raise InputError(
            f"the image's {path} cannot be read: {failure.strerror}",
            remedy="make the folder of the image readable for you, or copy it with its owner",
        ) from failure
    if len(data) > most:
        raise too_large(path, most)
    return data


COPY_AGAIN = "copy the image here again, or build it again"
"""What to do about an image that cannot be read as what it is."""


def too_large(path: str, most: int = MAX_FILE) -> InputError:
    """The error for a file that no kit has."""
    return InputError(
        f"the image's {path} has more than {most} bytes",
        expected="a file of a kit",
        remedy="no kit from hpcgen has such a file; rebuild the image",
    )


MOST_PATHS = 5_000_000


def list_folder(root: str, wanted: Callable[[str], bool]) -> set[str]:
    """The paths below ``root`` that are wanted, as they lie there: no link is followed.

    InputError: it has more than MOST_PATHS.
    """
    found: set[str] = set()
    seen = 0
    for folder, folders, files in os.walk(root):
        seen += len(folders) + len(files)
        if seen > MOST_PATHS:
            raise InputError(f"{root} has more than {MOST_PATHS} files", remedy="name the folder of an image")
        inside = folder[len(root.rstrip("/")) :]
        found |= {path for name in files if wanted(path := f"{inside}/{name}")}
    return found


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(read_folder(sys.argv[1], sys.argv[2:])))


SHELL = "/bin/sh"
"""The program that is looked at: no image of hpcgen is built without one."""
# Source: elf(5), bytes 18 and 19 of a program, with the constants ``EM_`` of elf.h.
_MACHINES = {b"\x3e\0": "amd64", b"\xb7\0": "arm64"}


def machine_of(program: bytes) -> str:
    """What registries and dpkg call the machine of a program, ``unknown`` for one of no site; empty if it is none."""
    return _MACHINES.get(program[18:20], "unknown") if program.startswith(b"\x7fELF") else ""


def folders_of(root: Path, paths: Sequence[str]) -> set[str]:
    """Those of absolute paths of an image that are folders in it; what a link leads to is not looked at."""
    return {path for path in paths if _real(root, path)}


def _real(root: Path, path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    places = [root.joinpath(*parts[: count + 1]) for count in range(len(parts))]
    return all(place.is_dir() and not place.is_symlink() for place in places)
