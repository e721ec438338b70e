"""Read files of an image from tar files: one, or the layers of an image in order. Nothing is unpacked to the disk."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Literal, cast

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import CHUNK, open_plain
from hpcgen.core.support.limits import LONGEST_PATH, READING_S, BoundedMember, ReadingLimit, Unpacked
from hpcgen.images.commands import piped
from hpcgen.images.folder import MAX_FILE, MAX_LINKS, too_large

_ROUNDS = 10

_DAMAGE = (
    tarfile.TarError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    RecursionError,
    OverflowError,
)

Layers = Callable[[], Iterable[IO[bytes]]]
Member = tuple[tarfile.TarFile, tarfile.TarInfo]


class ArchiveEntry(msgspec.Struct, frozen=True):
    """What one path is: a file with its bytes, a link with its target (from the image's root), or something else."""

    data: bytes | None = None
    link: str | None = None


def read_archive(
    open_layers: Layers, paths: Sequence[str], name: str, packed: int, top: str = "", most: int = MAX_FILE
) -> dict[str, bytes]:
    """Files of an image whose layers are tar files, perhaps compressed (gzip, bzip2, xz).

    open_layers: opens the layers, the lowest first; called again where a link leads to a path not yet read.
    name: of the image, for messages.
    packed: bytes of the layers as they are stored.
    top: the folder in the archive that is the image's root.
    most: bytes that a file may have.
    InputError: damaged, of an unknown compression, a file in it is absurdly large, or reading it takes too long.
    """
    limit = ReadingLimit(name, packed, READING_S)
    interest = {path for wanted in paths for path in prefixes(normal(wanted))}
    for _ in range(_ROUNDS):
        view: dict[str, ArchiveEntry] = {}
        for layer in open_layers():
            _apply(view, layer, interest, limit, top, most)
        resolved = {wanted: _resolve(view, normal(wanted)) for wanted in paths}
        more = {path for place in resolved.values() for path in prefixes(place)} - interest
        if not more:
            break
        interest |= more
    entries = {wanted: view.get(place) for wanted, place in resolved.items()}
    return {wanted: entry.data for wanted, entry in entries.items() if entry is not None and entry.data is not None}


def members(stream: IO[bytes], name: str, limit: ReadingLimit | None = None) -> Iterator[Member]:
    """The members of a tar file, one after the other, without keeping them; InputError where it is damaged.

    ``limit``: what may be unpacked; without one, what the size of this stream allows.
    """
    limit = limit or ReadingLimit(name, stream_bytes(stream))
    # tarfile's own decompression copies its whole buffer for each header; this is many times faster.
    return _each_member(lambda: decompressed(stream, name, limit), "r:", name, limit)


def streamed_members(stream: IO[bytes], name: str, limit: ReadingLimit) -> Iterator[Member]:
    """The same of a tar file that a program prints, which is read once from its start to its end."""
    return _each_member(lambda: stream, "r|", name, limit)


def _each_member(
    opened: Callable[[], IO[bytes]], mode: Literal["r:", "r|"], name: str, limit: ReadingLimit
) -> Iterator[Member]:
    try:
        with tarfile.open(fileobj=opened(), mode=mode, tarinfo=BoundedMember) as archive:
            while (member := archive.next()) is not None:
                limit.member()
                if max(len(member.name), len(member.linkname)) > LONGEST_PATH:
                    raise tarfile.ReadError("it has a file name that is far too long")
                archive.members.clear()  # type: ignore[attr-defined]
                yield archive, member
    except _DAMAGE as failure:
        raise _unreadable(name, failure) from failure


def stream_bytes(stream: IO[bytes]) -> int:
    """How long a stream is, as it is stored; it is at its start afterwards."""
    stream.seek(0, io.SEEK_END)
    size = stream.tell()
    stream.seek(0)
    return size


def decompressed(stream: IO[bytes], name: str, limit: ReadingLimit | None = None) -> IO[bytes]:
    """A tar file's bytes, whatever it was compressed with; InputError for zstd without its program, and at a limit."""
    first = stream.read(6)
    stream.seek(0)
    if first.startswith(b"\x1f\x8b"):
        return _counted(cast(IO[bytes], gzip.open(stream)), stream, name, limit)
    if first.startswith(b"BZh"):
        return _counted(bz2.open(stream), stream, name, limit)
    if first == b"\xfd7zXZ\0":
        return _counted(lzma.open(stream), stream, name, limit)
    if first.startswith(b"\x28\xb5\x2f\xfd"):
        return _by_zstd(stream, name, limit or ReadingLimit(name, stream_bytes(stream)))
    return stream


def _by_zstd(stream: IO[bytes], name: str, limit: ReadingLimit) -> IO[bytes]:
    """What a program unpacks into a temporary file: Python reads zstd since 3.14 alone."""
    program = shutil.which("zstd")
    if program is None:
        raise InputError(
            f"{name} has zstd-compressed parts, and zstd is not on PATH",
            remedy="install it; an image: skopeo copy --dest-compress-format gzip oci-archive:IMAGE oci-archive:OTHER",
        )
    plain = tempfile.TemporaryFile(prefix="hpcgen-")  # noqa: SIM115 - as long as it is read
    with tempfile.NamedTemporaryFile(prefix="hpcgen-") as packed:
        shutil.copyfileobj(stream, packed)
        packed.flush()
        with piped([program, "-d", "-c", "-q", packed.name], READING_S) as process:
            assert process.stdout is not None
            while data := process.stdout.read(CHUNK):
                limit.take(len(data))
                plain.write(data)
    if process.returncode:
        raise InputError(f"zstd cannot unpack {name}", remedy="copy it again")
    plain.seek(0)
    return plain


def _counted(unpacked: IO[bytes], stream: IO[bytes], name: str, limit: ReadingLimit | None) -> IO[bytes]:
    return cast(IO[bytes], Unpacked(unpacked, limit or ReadingLimit(name, stream_bytes(stream))))


def content(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, most: int = MAX_FILE) -> bytes:
    """The bytes of a regular file; InputError if it has more than ``most`` bytes, or is damaged.

    Here as in ``members``, because what is read between two members is read outside of it.
    """
    if member.size > most:
        raise too_large(normal(member.name), most)
    stream = archive.extractfile(member)
    assert stream is not None
    try:
        return stream.read()
    except _DAMAGE as failure:
        raise _unreadable(name, failure) from failure


def _unreadable(name: str, failure: Exception) -> InputError:
    return InputError(f"{name} cannot be read: {failure}", remedy="copy the image again")


def _apply(
    view: dict[str, ArchiveEntry], layer: IO[bytes], interest: set[str], limit: ReadingLimit, top: str, most: int
) -> None:
    """Lay one layer over the view. Whiteouts are the OCI image specification's (layer.md)."""
    upper: set[str] = set()
    for archive, member in members(layer, limit.name, limit):
        path = normal(member.name).removeprefix(top)
        if _whiteout(view, path, upper) or path not in interest:
            continue
        folder = posixpath.dirname(path)
        upper.add(path)
        if not member.isdir():
            _forget(view, path, set())
        if member.isreg():
            view[path] = ArchiveEntry(data=content(archive, member, limit.name, most))
        elif member.islnk():
            target = normal(member.linkname).removeprefix(top)
            view[path] = view.get(target) or ArchiveEntry(link=target)
        elif member.issym():
            view[path] = ArchiveEntry(link=normal(posixpath.join(folder, member.linkname)))
        else:
            view[path] = ArchiveEntry()


def list_archive(open_layers: Layers, wanted: Callable[[str], bool], name: str, packed: int, top: str = "") -> set[str]:
    """The paths of an image that are wanted; parameters and errors as of :func:`read_archive`."""
    limit = ReadingLimit(name, packed, READING_S)
    view: dict[str, ArchiveEntry] = {}
    for layer in open_layers():
        upper: set[str] = set()
        for _, member in members(layer, name, limit):
            path = normal(member.name).removeprefix(top)
            named = member.isreg() or member.islnk() or member.issym()
            if _whiteout(view, path, upper) or not named or not wanted(path):
                continue
            upper.add(path)
            view[path] = ArchiveEntry()
    return set(view)


def _whiteout(view: dict[str, ArchiveEntry], path: str, upper: set[str]) -> bool:
    """Whether a member only says what of the layers below is gone, which it then is."""
    gone = whiteout(path)
    if gone is None:
        return False
    if not gone.opaque:
        view.pop(gone.path, None)
    _forget(view, gone.path, upper)
    return True


class Whiteout(msgspec.Struct, frozen=True):
    """A path that is gone of the layers below; ``opaque``: only what is below it. Source: layer.md, as above."""

    path: str
    opaque: bool


def whiteout(path: str) -> Whiteout | None:
    """What a member's name says is gone; None for a file, a link or a folder."""
    folder, last = posixpath.split(path)
    if last == ".wh..wh..opq":
        return Whiteout(folder, True)
    return Whiteout(posixpath.join(folder, last[4:]), False) if last.startswith(".wh.") else None


def _forget(view: dict[str, ArchiveEntry], folder: str, kept: set[str]) -> None:
    for path in [each for each in view if each.startswith(f"{folder.rstrip('/')}/") and each not in kept]:
        del view[path]


def _resolve(view: dict[str, ArchiveEntry], path: str) -> str:
    """Where a path leads, as far as the view tells."""
    for _ in range(MAX_LINKS):
        if len(path) > LONGEST_PATH:
            break
        for prefix in prefixes(path):
            entry = view.get(prefix)
            if entry is not None and entry.link is not None:
                path = normal(entry.link + path[len(prefix) :])
                break
        else:
            return path
    return "/"


def prefixes(path: str) -> list[str]:
    """The path and every folder above it, the topmost first."""
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def normal(path: str) -> str:
    """An absolute path without . and .., none of which leads out of the image."""
    return "/" + posixpath.normpath("/" + path).lstrip("/")


# Read files of an image that is one tar file of a root.


def read_tar(path: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
    """Files of a tar file of an image's root; the root may lie in one folder of its own."""
    packed = sum(map(stream_bytes, opened(path)))
    found = read_archive(lambda: opened(path), paths, path, packed, most=most)
    if not found and (top := _first_folder(path)):
        return read_archive(lambda: opened(path), paths, path, packed, top, most)
    return found


def list_tar(path: str, wanted: Callable[[str], bool]) -> set[str]:
    """The paths of such an image that are wanted."""
    packed = sum(map(stream_bytes, opened(path)))
    found = list_archive(lambda: opened(path), wanted, path, packed)
    if not found and (top := _first_folder(path)):
        return list_archive(lambda: opened(path), wanted, path, packed, top)
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
