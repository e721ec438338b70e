"""What a run of Bazel has left → the files that a lock pins, each with its addresses and sha256."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import FetchError, Problem
from hpcgen.core.model.bazel import BazelFile
from hpcgen.core.support.hashing import sha256_of
from hpcgen.supply.net.web import shown

# What repository rules did, from the log that Bazel keeps of them (``--experimental_workspace_rules_log_file``).
#
# The log is a row of messages, each with its length before it: WorkspaceEvent of Bazel's workspace_log.proto, whose
# numbers of fields have stayed the same (bazelbuild/bazel@02baf69; read here as 4.2.3 and 7.7.1 write it). A download
# is written down with all its addresses and the hash that the rule named; whether it came is not said.

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
    """All downloads of a log, in its order. FetchError: the log cannot be read."""
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


class Fetched(NamedTuple):
    """What a run has left.

    ``cached``: sha256 → path of each file in Bazel's cache. ``wheels``: the same of the wheels that pip has brought.
    ``requests``: what rules have asked for. ``registry``: what was read of module registries, by its path: address and
    content.
    """

    cached: Mapping[str, str]
    requests: Sequence[Requested]
    wheels: Mapping[str, str]
    registry: Mapping[str, tuple[str, bytes]]

    def notes(self) -> list[str]:
        """What was fetched that no lock can pin, for the user whose build does not work without it."""
        loose = {shown(url) for each in self.requests if not each.sha256 for url in each.urls[:1]}
        return [f"ERROR: fetched without a sha256: {url}" for url in sorted(loose)]


def listed(found: Fetched) -> list[BazelFile]:
    """The files, by name. FetchError: a file has no address that a lock can name."""
    files: dict[tuple[str, str], BazelFile] = {}
    problems: list[Problem] = []
    for file in [*_requested(found, problems), *_of_registries(found), *_of_pip(found, problems)]:
        key = (file.sha256, file.registry or file.file or posixpath.basename(urlsplit(file.urls[0]).path))
        if known := files.get(key):
            file = msgspec.structs.replace(known, urls=tuple(dict.fromkeys([*known.urls, *file.urls])))
        files[key] = file
    if problems:
        raise FetchError(problems)
    return sorted(files.values(), key=lambda each: (each.name, each.registry, each.sha256, each.urls))


def _requested(found: Fetched, problems: list[Problem]) -> Iterator[BazelFile]:
    """Each file that a rule asked for by a hash, and got."""
    for each in found.requests:
        if each.sha256 not in found.cached:
            continue
        urls = [url for url in each.urls if _fits({"urls": [url]})]
        name = _repository(each.repository)
        if not urls:
            tried = ", ".join(map(shown, each.urls)) or "no address"
            message = f"Bazel fetched {name} from {tried}, which no lock can name"
            expected = "an https:// address without spaces, quotes or a password"
            problems.append(Problem(message, expected=expected, remedy="lock without --fetch-bazel"))
            continue
        # Bazel up to 6 looks for the last part of the first address.
        first = posixpath.basename(urlsplit(each.urls[0]).path)
        file = first if first != posixpath.basename(urlsplit(urls[0]).path) else ""
        yield BazelFile(name, each.sha256, tuple(urls), file if _fits({"file": file}) else "")


def _of_registries(found: Fetched) -> Iterator[BazelFile]:
    for path, (url, data) in found.registry.items():
        # NUMBER/modules/NAME/VERSION/FILE
        name = [*path.split("/"), "", ""][2] or "registry"
        yield BazelFile(_repository(name), sha256_of(data), (url,), registry=path)


def _of_pip(found: Fetched, problems: list[Problem]) -> Iterator[BazelFile]:
    """Wheels in repositories that did not come through Bazel itself."""
    for sha256, path in found.wheels.items():
        if sha256 in found.cached:
            continue
        file = posixpath.basename(path)
        try:
            name, version, _, _ = parse_wheel_filename(file)
        except InvalidWheelFilename:
            problems.append(
                Problem(f"a rule left {file!r}, which is not a wheel name", remedy="use another release of the block")
            )
            continue
        yield BazelFile(_repository(name), sha256, (), file, f"{name}=={version}", pip=True)


def _repository(context: str) -> str:
    """The name in ``//external:NAME``, ``repository @@NAME`` or ``module extension … in …``, as a lock has names."""
    last = re.split(r"//external:|repository @+", context)[-1]
    return re.sub(r"[^A-Za-z0-9._~+-]+", "_", last).lstrip("._~+-") or "unnamed"


def _fits(fields: Mapping[str, object]) -> bool:
    """Whether a lock takes these fields of a file."""
    try:
        record_from({"name": "x", "sha256": 64 * "0", **fields}, BazelFile)
    except msgspec.ValidationError:
        return False
    return True
