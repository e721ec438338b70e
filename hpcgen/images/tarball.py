"""Read files of an image that is one tar file of a root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO

from hpcgen.errors import InputError
from hpcgen.images.archive import members, read_archive


def read_tar(path: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Files of a tar file of an image's root; the root may lie in one folder of its own."""
    found = read_archive(lambda: opened(path), paths, path)
    if not found and (top := _first_folder(path)):
        return read_archive(lambda: opened(path), paths, path, top)
    return found


def opened(path: str) -> Iterator[IO[bytes]]:
    """One file, open while it is used; InputError if it cannot be."""
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below, after the reader is done
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
