"""Read files of an image that is one tar file of a root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import open_plain
from hpcgen.images.archive import members, read_archive, stream_bytes


def read_tar(path: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Files of a tar file of an image's root; the root may lie in one folder of its own."""
    packed = sum(map(stream_bytes, opened(path)))
    found = read_archive(lambda: opened(path), paths, path, packed)
    if not found and (top := _first_folder(path)):
        return read_archive(lambda: opened(path), paths, path, packed, top)
    return found


def opened(path: str) -> Iterator[IO[bytes]]:
    """One file, open while it is used; InputError if it cannot be."""
    try:
        stream = open_plain(Path(path), links=True)
    except OSError as failure:
        raise InputError(f"{path} cannot be read: {failure.strerror}") from failure
    with stream:
        yield stream


def _first_folder(path: str) -> str:
    """The folder that the first members lie in, as ``/name``; empty if there is none in common."""
    for stream in opened(path):
        names = [member.name.removeprefix("./").split("/") for _, member in islice(members(stream, path), 3)]
        tops = {parts[0] for parts in names} - {"", "."}
        if len(tops) == 1:
            return f"/{tops.pop()}"
    return ""
