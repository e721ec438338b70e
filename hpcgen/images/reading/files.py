"""The files of an image as readers see them: names first, then the content of the few that were asked for.

Each kind of image has a source, which lists its files in one go and gives contents one after the other, so that a
squashfs of many gigabytes is neither unpacked nor mounted. Everything is bounded: an image may be made to do harm.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.image_facts import FolderSize
from hpcgen.core.support.limits import LONGEST_PATH
from hpcgen.core.support.units import size
from hpcgen.images.folder import MAX_LINKS
from hpcgen.machine.detect.tree import Blob

MOST_PATHS = 5_000_000
MOST_KEPT = 300_000
"""Names that readers ask for, and links, of one image."""
TEXT = 1024 * 1024
LIBRARY = 4 * 1024**3
_TARGETS = r"/(?:.*/)?(?:s?bin/[^/]+|[^/]+\.so(?:\.[0-9.]+)?)"
"""What links lead to whose names readers ask for: programs and libraries."""
_FOLDER_DEPTH, _MOST_FOLDERS, _SHOWN_FOLDERS = 6, 50_000, 20


class ImageEntry(msgspec.Struct, frozen=True):
    """A name in an image as it lies there. ``target``: of a link, as it is written."""

    path: str
    kind: Literal["file", "link"]
    size: int = 0
    target: str = ""


class ImageFileSource:
    """Where the files of one image come from. ``unread`` is filled with what could not be listed."""

    def __init__(self) -> None:
        self.unread: list[str] = []

    def entries(self) -> Iterator[ImageEntry]:
        """Every file and link; folders, devices and sockets are left out, and names that cannot be printed."""
        raise NotImplementedError

    def contents(self, wanted: Mapping[str, ImageEntry], starts: Callable[[str, bytes], bool]) -> Iterator[Content]:
        """The files that are wanted, each usable until the next is asked for.

        ``starts``: whether a file is to be read on, by its path and its first bytes.
        """
        raise NotImplementedError


class Content(msgspec.Struct, frozen=True):
    """A file's path and what is in it."""

    path: str
    blob: Blob


class Look(msgspec.Struct, frozen=True, eq=False):
    """Files that a reader asks for.

    pattern: of their whole path, as the image has it or a link in it.
    examine: makes of a file what the reader needs; without it the name is enough.
    most: bytes that such a file may have.
    elf: it is read only if it begins as a program or library does.
    """

    pattern: str
    examine: Callable[[Blob], Any] | None = None
    most: int = TEXT
    elf: bool = False


class SeenImage:
    """What was found of everything that readers look for."""

    def __init__(self, names: dict[str, str], sizes: dict[str, int], links: dict[str, str]) -> None:
        self.names, self.sizes, self._links = names, sizes, links
        self.folders: list[FolderSize] = []
        self.unread: list[str] = []
        self._by_look: dict[int, dict[str, str]] = {}
        self._examined: dict[tuple[int, str], Any] = {}

    def named(self, look: Look) -> dict[str, str]:
        """The paths that fit, as they are named, each with the file that it leads to."""
        if id(look) not in self._by_look:
            fits = re.compile(look.pattern).fullmatch
            self._by_look[id(look)] = {path: real for path, real in self.names.items() if fits(path)}
        return self._by_look[id(look)]

    def found(self, look: Look) -> dict[str, Any]:
        """What was made of the files that fit, by their own path; those that said nothing are left out."""
        pairs = ((real, self._examined.get((id(look), real))) for real in self.named(look).values())
        return {real: each for real, each in sorted(pairs) if each is not None}

    def one(self, look: Look) -> tuple[str, Any] | None:
        """The first of them."""
        return next(iter(self.found(look).items()), None)

    def real(self, path: str) -> str:
        """Where a path leads inside the image; "" where links go round in circles or out of bounds."""
        todo, done, followed = path.split("/")[::-1], [""], 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done[1:] = done[1:-1]
                continue
            target = self._links.get("/".join([*done, part]))
            if target is None:
                done.append(part)
                continue
            followed += 1
            if followed > MAX_LINKS or len(target) + sum(map(len, todo)) > LONGEST_PATH:
                return ""
            if target.startswith("/"):
                done = [""]
            todo.extend(target.split("/")[::-1])
        return "/".join(done) or "/"

    def keep(self, look: Look, path: str, made: Any) -> None:
        """Note what a look made of a file."""
        self._examined[id(look), path] = made


def viewed(source: ImageFileSource, looks: Sequence[Look]) -> SeenImage:
    """List an image, then read what the looks ask for.

    InputError: it has far more files than an image has, or cannot be read.
    """
    view = _listed(source, looks)
    wanted: dict[str, list[Look]] = {}
    for look in looks:
        if look.examine is None:
            continue
        for real in sorted(set(view.named(look).values())):
            if view.sizes[real] > look.most:
                view.unread.append(f"{real} has {size(view.sizes[real])}, which is too large for such a file")
            else:
                wanted.setdefault(real, []).append(look)
    elf = {path for path, asked in wanted.items() if all(look.elf for look in asked)}
    entries = {path: ImageEntry(path, "file", view.sizes[path]) for path in sorted(wanted)}
    for content in source.contents(entries, lambda path, first: path not in elf or first[:4] == b"\x7fELF"):
        for look in wanted.pop(content.path, ()):
            assert look.examine is not None
            view.keep(look, content.path, look.examine(content.blob))
    view.unread += source.unread
    return view


def _listed(source: ImageFileSource, looks: Sequence[Look]) -> SeenImage:
    asked = re.compile("|".join(f"(?:{look.pattern})" for look in looks)).fullmatch
    held = re.compile("|".join([_TARGETS, *(f"(?:{look.pattern})" for look in looks)])).fullmatch
    kept: dict[str, int] = {}
    links: dict[str, str] = {}
    sizes = _Sizes()
    odd = 0
    for seen, entry in enumerate(source.entries()):
        if seen >= MOST_PATHS:
            raise InputError(f"it has more than {MOST_PATHS} files", remedy="name the folder or file of an image")
        if not entry.path.isprintable() or len(entry.path) > LONGEST_PATH:
            odd += 1
            continue
        if entry.kind == "link":
            if entry.target.isprintable() and 0 < len(entry.target) <= LONGEST_PATH:
                links[entry.path] = entry.target
            continue
        sizes.add(entry)
        if held(entry.path):
            kept[entry.path] = entry.size
        if len(kept) + len(links) > MOST_KEPT:
            raise InputError(
                f"it has more than {MOST_KEPT} links, records and libraries",
                expected="an image",
                remedy="hpcgen stops reading there; fetch it again, or from another source",
            )
    view = SeenImage({path: path for path in kept if asked(path)}, kept, links)
    for path in filter(asked, list(links)):
        if (real := view.real(path)) in kept:
            view.names[path] = real
    view.folders = sizes.largest()
    if odd:
        view.unread.append(f"{odd} of its file names cannot be printed and were skipped")
    return view


class _Sizes:
    """Bytes and files by folder, down to some depth."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = {}

    def add(self, entry: ImageEntry) -> None:
        folder = posixpath.dirname(entry.path)
        parts = folder.split("/", _FOLDER_DEPTH + 1)[: _FOLDER_DEPTH + 1]
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[:count]) or "/"
            if name in self._found or len(self._found) < _MOST_FOLDERS:
                each = self._found.setdefault(name, [0, 0])
                each[0] += entry.size
                each[1] += 1

    def largest(self) -> list[FolderSize]:
        """The whole, and the largest folders; one that is nearly all of the folder above stands for it."""
        within: dict[str, int] = {}
        for name, (count, _) in self._found.items():
            above = posixpath.dirname(name)
            if name != "/":
                within[above] = max(within.get(above, 0), count)
        rows = sorted(self._found.items(), key=lambda row: (row[0] != "/", -row[1][0], row[0]))
        shown = [row for row in rows if row[0] == "/" or (row[1][0] and within.get(row[0], 0) < 0.98 * row[1][0])]
        return [FolderSize(name, count, files) for name, (count, files) in shown[:_SHOWN_FOLDERS]]


def text_of(blob: Blob) -> str | None:
    """A small text file; None if it is none."""
    data = blob.at(0, blob.size)
    return None if b"\0" in data else data.decode("utf-8", "replace")


def bytes_of(blob: Blob) -> bytes:
    """All that is in a file."""
    return blob.at(0, blob.size)
