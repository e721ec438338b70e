"""Where the files of an image come from: a folder, a squashfs, tar files in layers, a container that never starts.

What has no random access is put into a temporary file, one file of the image at a time.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hpcgen.core.errors import InputError
from hpcgen.core.support.limits import READING_S, ReadingLimit
from hpcgen.core.support.processes import require_program
from hpcgen.images.archive import (
    Member,
    Whiteout,
    members,
    normal,
    opened,
    stream_bytes,
    streamed_members,
    whiteout,
)
from hpcgen.images.commands import ask, piped
from hpcgen.images.folder import COPY_AGAIN
from hpcgen.images.reading.files import MOST_PATHS, Content, ImageEntry, ImageFileSource
from hpcgen.machine.detect.tree import Blob, Budget

_PIECE = 1 << 20
_HEAD = 64
_ARGUMENTS = 512 * 1024
_ALL = 256 * 1024**3
"""Bytes that are looked at in one image, those that are looked at twice counted twice; time ends before."""
_NEED = "read a squashfs or SIF image"
_FROM = "it comes with squashfs-tools; or convert the image to a folder where it was built"

Starts = Callable[[str, bytes], bool]


class FolderSource(ImageFileSource):
    """A folder, no link of which is followed."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = root.rstrip("/")

    def entries(self) -> Iterator[ImageEntry]:
        todo = [""]
        closed = 0
        while todo:
            folder = todo.pop()
            try:
                with os.scandir(self._root + folder or "/") as found:
                    for each in found:
                        path = f"{folder}/{each.name}"
                        if each.is_symlink():
                            yield ImageEntry(path, "link", target=str(Path(each.path).readlink()))
                        elif each.is_dir(follow_symlinks=False):
                            todo.append(path)
                        elif each.is_file(follow_symlinks=False):
                            yield ImageEntry(path, "file", each.stat(follow_symlinks=False).st_size)
            except OSError:
                closed += 1
        if closed:
            self.unread.append(f"{closed} of its folders are not readable for you")

    def contents(self, wanted: Mapping[str, ImageEntry], starts: Starts) -> Iterator[Content]:
        budget = Budget(_ALL)
        end = time.monotonic() + READING_S
        for path in wanted:
            _in_time(end, self._root)
            try:
                descriptor = os.open(self._root + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as failure:
                self.unread.append(f"{path} cannot be read: {failure.strerror}")
                continue
            try:
                told = os.fstat(descriptor)
                blob = Blob(descriptor, told.st_size, budget)
                if stat.S_ISREG(told.st_mode) and starts(path, blob.at(0, _HEAD)):
                    yield Content(path, blob)
            finally:
                os.close(descriptor)


def _in_time(end: float, name: str) -> None:
    if time.monotonic() > end:
        raise InputError(f"{name} could not be read within {READING_S:.0f} s", remedy="copy it to a local disk first")


class _Spool:
    """A temporary file with one file of the image after the other; zeros take no place in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._budget = file, Budget(_ALL)

    def filled(self, path: str, size: int, read: Callable[[int], bytes], starts: Starts) -> Content | None:
        """A file that has been read to its end; None for one that ends early or is not wanted after its first bytes."""
        self._file.seek(0)
        self._file.truncate()
        left, first, wanted = size, True, True
        while left:
            data = read(min(_HEAD if first else _PIECE, left))
            if not data:
                return None
            if first:
                wanted, first = starts(path, data), False
            left -= len(data)
            if wanted and data.count(0) == len(data):
                self._file.seek(len(data), os.SEEK_CUR)
            elif wanted:
                self._file.write(data)
        self._file.truncate(size)
        self._file.flush()
        return Content(path, Blob(self._file.fileno(), size, self._budget)) if wanted else None


@contextmanager
def _spool() -> Iterator[_Spool]:
    with tempfile.TemporaryFile(prefix="hpcgen-") as file:
        yield _Spool(file)


class SquashfsSource(ImageFileSource):
    """A squashfs that begins at ``offset`` in a file, by unsquashfs: one call for the names, one for the contents."""

    _LINE = re.compile(
        r"([-dlcbps])\S{9} \S+ +(\d+)(?:, *\d+)? \d{4}-\d\d-\d\d \d\d:\d\d squashfs-root(/.*)?", re.DOTALL
    )

    def __init__(self, path: str, offset: int = 0) -> None:
        super().__init__()
        self._path = path
        program = require_program("unsquashfs", _NEED, _FROM)
        self._base = [program, *(["-offset", str(offset)] if offset else [])]

    def entries(self) -> Iterator[ImageEntry]:
        last: ImageEntry | None = None
        listed = broken = 0
        with piped([*self._base, "-ll", self._path], READING_S) as process:
            assert process.stdout is not None
            for raw in process.stdout:
                line = raw.rstrip(b"\n").decode("utf-8", "surrogateescape")
                match = self._LINE.fullmatch(line) if len(line) < 3 * _HEAD * _HEAD else None
                if match is None:
                    # The rest of a name with a line break: nothing that is looked for has one.
                    broken += last is not None
                    last = None
                    continue
                listed += 1
                if last is not None:
                    yield last
                last = self._entry(match)
        if process.returncode or not listed:
            raise self._unreadable(process.returncode)
        if last is not None:
            yield last
        if broken:
            self.unread.append(f"{broken} of its file names contain a line break and were skipped")

    @staticmethod
    def _entry(match: re.Match[str]) -> ImageEntry | None:
        path = match[3] or "/"
        if match[1] == "l":
            name, _, target = path.partition(" -> ")
            return ImageEntry(name, "link", target=target)
        return ImageEntry(path, "file", int(match[2])) if match[1] == "-" else None

    def contents(self, wanted: Mapping[str, ImageEntry], starts: Starts) -> Iterator[Content]:
        todo = list(wanted.values())
        while todo:
            some: list[ImageEntry] = []
            length = 0
            while todo and length < _ARGUMENTS:
                some.append(todo.pop(0))
                length += len(some[-1].path.encode()) + 9
            yield from self._printed(some, starts) if self._prints() else self._unpacked(some, starts)

    def _prints(self) -> bool:
        """Whether this unsquashfs has ``-cat``: since 4.5."""
        told = re.search(rb"unsquashfs version (\d+)\.(\d+)", ask([self._base[0], "-version"]).output)
        return told is not None and (int(told[1]), int(told[2])) >= (4, 5)

    def _printed(self, some: list[ImageEntry], starts: Starts) -> Iterator[Content]:
        """They come one after the other without a mark between them, so that lengths tell them apart."""
        names = [each.path.lstrip("/") for each in some]
        with _spool() as spool:
            with piped([*self._base, "-no-wildcards", "-cat", self._path, *names], READING_S) as process:
                assert process.stdout is not None
                for each in some:
                    if content := spool.filled(each.path, each.size, process.stdout.read, starts):
                        yield content
                more = process.stdout.read(1)
            if process.returncode or more:
                raise self._unreadable(process.returncode)

    def _unpacked(self, some: list[ImageEntry], starts: Starts) -> Iterator[Content]:
        """The way of releases before 4.5, which have no ``-cat``."""
        with tempfile.TemporaryDirectory(prefix="hpcgen-") as work:
            names = [each.path.lstrip("/") for each in some]
            words = [*self._base, "-no-progress", "-no-xattrs", "-dest", f"{work}/root", self._path, *names]
            with piped(words, READING_S) as process:
                assert process.stdout is not None
                while process.stdout.read(_PIECE):
                    pass
            if process.returncode and not os.path.isdir(f"{work}/root"):  # noqa: PTH112
                raise self._unreadable(process.returncode)
            yield from FolderSource(f"{work}/root").contents({each.path: each for each in some}, starts)

    def _unreadable(self, status: int | None) -> InputError:
        return InputError(f"{self._path} cannot be read by unsquashfs (exit status {status})", remedy=COPY_AGAIN)


class TarSource(ImageFileSource):
    """Tar files laid over each other, the lowest first; ``layers`` opens them, once for names, once for contents."""

    def __init__(self, layers: Callable[[], Iterable[Iterator[Member]]], name: str) -> None:
        super().__init__()
        self._layers, self._name = layers, name
        self._places: dict[str, tuple[int, int]] = {}
        self._top = ""

    @classmethod
    def of_files(cls, files: Callable[[], Iterable[IO[bytes]]], name: str, packed: int) -> TarSource:
        """Of files that can be opened, ``packed`` bytes in all."""

        def layers() -> Iterator[Iterator[Member]]:
            limit = ReadingLimit(name, packed, READING_S)
            return (members(stream, name, limit) for stream in files())

        return cls(layers, name)

    def entries(self) -> Iterator[ImageEntry]:
        view: dict[str, ImageEntry] = {}
        for number, layer in enumerate(self._layers()):
            upper: set[str] = set()
            for at, (_, member) in enumerate(layer):
                path = normal(member.name)
                if (gone := whiteout(path)) is not None:
                    _take_away(view, gone, upper)
                    continue
                if member.isdir():
                    continue
                view.pop(path, None)
                upper.add(path)
                if member.isreg():
                    view[path] = ImageEntry(path, "file", member.size)
                    self._places[path] = (number, at)
                elif member.issym() or member.islnk():
                    target = member.linkname if member.issym() else normal(member.linkname)
                    view[path] = ImageEntry(path, "link", target=target)
                if len(view) > MOST_PATHS:
                    raise InputError(f"{self._name} has more than {MOST_PATHS} files", remedy=COPY_AGAIN)
        self._top = _top_of(view)
        cut = len(self._top)
        for entry in view.values():
            hard = entry.target.startswith(f"{self._top}/") if self._top else False
            target = entry.target[cut:] if hard else entry.target
            yield ImageEntry(entry.path[cut:], entry.kind, entry.size, target) if cut else entry

    def contents(self, wanted: Mapping[str, ImageEntry], starts: Starts) -> Iterator[Content]:
        places = {self._places[self._top + path]: entry for path, entry in wanted.items()}
        last = max(places, default=(-1, 0))[0]
        with _spool() as spool:
            for number, layer in enumerate(self._layers()):
                if number > last:
                    break
                for at, (archive, member) in enumerate(layer):
                    entry = places.get((number, at))
                    stream = archive.extractfile(member) if entry is not None else None
                    if entry is None or stream is None:
                        continue
                    try:
                        content = spool.filled(entry.path, member.size, stream.read, starts)
                    except (EOFError, ValueError, OSError) as failure:
                        raise InputError(f"{self._name} cannot be read: {failure}", remedy=COPY_AGAIN) from failure
                    if content:
                        yield content


def tar_source(path: str) -> TarSource:
    """One tar file of an image's root, which may lie in one folder of its own."""
    return TarSource.of_files(lambda: opened(path), path, sum(map(stream_bytes, opened(path))))


def _take_away(view: dict[str, ImageEntry], gone: Whiteout, upper: set[str]) -> None:
    """What a layer says is gone of those below."""
    if not gone.opaque:
        view.pop(gone.path, None)
    below = f"{gone.path.rstrip('/')}/"
    for path in [each for each in view if each.startswith(below) and each not in upper]:
        del view[path]


def _top_of(view: Mapping[str, ImageEntry]) -> str:
    """The one folder that an archive of a root may have everything in."""
    tops = {path.split("/", 2)[1] for path in view}
    if len(tops) != 1:
        return ""
    top = f"/{tops.pop()}"
    inside = {path.split("/", 3)[2] for path in view if path.count("/") > 1}
    return top if inside & {"usr", "etc", "bin", "lib", "opt"} and top not in ("/usr", "/etc", "/opt") else ""


def exported(program: str, container: str, name: str, packed: int) -> TarSource:
    """The files of a container that was made and never started, as podman and docker export them."""

    def layers() -> Iterator[Iterator[Member]]:
        with piped([program, "export", container], READING_S) as process:
            assert process.stdout is not None
            yield streamed_members(process.stdout, name, ReadingLimit(name, packed, READING_S))

    return TarSource(layers, name)
