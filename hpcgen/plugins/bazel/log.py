"""What repository rules did, from the log that Bazel keeps of them (``--experimental_workspace_rules_log_file``).

The log is a row of messages, each with its length before it: WorkspaceEvent of Bazel's workspace_log.proto, whose
numbers of fields have stayed the same (bazelbuild/bazel@02baf69; read here as 4.2.3 and 7.7.1 write it). A download is
written down with all its addresses and the hash that the rule named; whether it came is not said.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from hpcgen.core.errors import FetchError

_CONTEXT = 2
_DOWNLOAD, _DOWNLOAD_AND_EXTRACT = 4, 5
_INTEGRITY = {_DOWNLOAD: 5, _DOWNLOAD_AND_EXTRACT: 6}
_URL, _SHA256 = 1, 3
_LONGEST = 256 * 1024 * 1024
"""Bytes of one message: rules write whole files into it."""


class Requested(NamedTuple):
    """A download that a rule asked for: in which repository, from which addresses, and the hash that it named."""

    repository: str
    urls: tuple[str, ...]
    sha256: str


def requested(log: BinaryIO) -> list[Requested]:
    """All downloads of a log, in its order.

    Raises
    ------
    FetchError: the log cannot be read.
    """
    try:
        return [each for message in _messages(log) for each in _requests(_fields(message))]
    except (IndexError, ValueError) as failure:
        raise FetchError(
            f"Bazel's log of its downloads is not understood: {failure}",
            remedy="use another release, or lock without --fetch-bazel",
        ) from failure


def _messages(log: BinaryIO) -> Iterator[bytes]:
    while start := log.read(1):
        while start[-1] & 0x80:
            start += log.read(1) or b"\0"
        length, _ = _number(start, 0)
        message = log.read(length) if length <= _LONGEST else b""
        if len(message) != length:
            raise ValueError("it ends in the middle of a message")
        yield message


def _requests(event: dict[int, list[bytes]]) -> Iterator[Requested]:
    context = event.get(_CONTEXT, [b""])[-1].decode("utf-8", "replace")
    for kind, integrity in _INTEGRITY.items():
        for download in map(_fields, event.get(kind, [])):
            urls = tuple(url.decode("utf-8", "replace") for url in download.get(_URL, []))
            named = download.get(_SHA256, [b""])[-1].decode("ascii", "replace").lower()
            yield Requested(context, urls, named or _sha256_of(download.get(integrity, [b""])[-1]))


def _sha256_of(integrity: bytes) -> str:
    """The sha256 in ``sha256-BASE64`` (Subresource Integrity); empty for another hash."""
    kind, _, value = integrity.partition(b"-")
    return base64.b64decode(value).hex() if kind == b"sha256" else ""


def _fields(message: bytes) -> dict[int, list[bytes]]:
    """The fields of a message that are bytes, by number. Source: protobuf.dev/programming-guides/encoding."""
    found: dict[int, list[bytes]] = {}
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            _, at = _number(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = _number(message, at)
            found.setdefault(number, []).append(message[at : at + length])
            at += length
        else:
            raise ValueError(f"it has a field of the kind {kind}")
    if at > len(message):
        raise ValueError("a field is longer than its message")
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in base 128, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("it has a number that is too long")
