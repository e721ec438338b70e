"""Paths below a folder that a file of ours names: such a file may be a stranger's, in a kit or prefix from elsewhere.

A path is relative and has no ``..``, and is reached step by step without following links, which lead to what is
somebody else's.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

BELOW = r"(?![/])(?!(.*/)?\.{0,2}(/|$))[^\x00-\x1f\x7f-\x9f\u2028\u2029]+"
"""A path below a folder, as part of an expression."""


def is_below(name: str) -> bool:
    """Whether a text is a path below a folder: relative, without ``..``, ``.``, empty parts and control characters."""
    return re.fullmatch(BELOW, name) is not None


@contextlib.contextmanager
def folder_of(directory: Path, name: str, make: bool = False) -> Iterator[int]:
    """The open folder of the file ``name`` below ``directory``.

    make: make the folders between that are not there.
    OSError: a folder between is missing, or is a link.
    ValueError: ``name`` leads out of ``directory``.
    """
    if not is_below(name):
        raise ValueError(f"{name!r} is not a path below a folder")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    opened = [os.open(directory, flags)]
    try:
        for step in Path(name).parent.parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(step, dir_fd=opened[-1])
            opened.append(os.open(step, flags | os.O_NOFOLLOW, dir_fd=opened[-1]))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def unlink_below(directory: Path, name: str) -> None:
    """Remove a file; errors as :func:`folder_of`."""
    with folder_of(directory, name) as folder:
        os.unlink(Path(name).name, dir_fd=folder)


def rmdir_below(directory: Path, name: str) -> None:
    """Remove an empty folder; errors as :func:`folder_of`."""
    with folder_of(directory, name) as folder:
        os.rmdir(Path(name).name, dir_fd=folder)
