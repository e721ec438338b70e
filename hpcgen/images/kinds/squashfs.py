"""A squashfs file. Its files are read with unsquashfs, as those of a SIF are: nothing is mounted or started.

``unsquashfs -cat`` came with squashfs-tools 4.5; before that (Enterprise Linux 7 and 8 have 4.3) the files asked for
are unpacked into a temporary folder. 4.5.1 follows no links in ``-cat`` (seen), so links are looked up here.
"""

from __future__ import annotations

import posixpath
import resource
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgen.core.errors import InputError
from hpcgen.core.support.processes import require_program
from hpcgen.images.commands import CommandOutput, ask
from hpcgen.images.folder import MAX_FILE, MAX_LINKS, read_folder
from hpcgen.images.kinds.base import ConversionRule, ConversionStep, ConversionTask, ImageKind, conversion_command
from hpcgen.images.kinds.directory import marked

if TYPE_CHECKING:
    from hpcgen.images.reading.files import ImageFileSource

_REMEDY = "it comes with squashfs-tools; or convert the image to a folder where it was built"
_LISTING = 512 * 1024 * 1024
"""Bytes of the names in one image."""
_ABSENT = ("no matches for", "is a directory", "not a regular file", "is not a")


def read_squashfs(path: str, paths: Sequence[str], offset: int = 0, most: int = MAX_FILE) -> dict[str, bytes]:
    """Files of a squashfs that begins at ``offset`` in a file; what is missing is left out.

    MissingToolError: unsquashfs is not installed. InputError: it is no squashfs, or a file in it is absurdly large.
    """
    program = require_program("unsquashfs", "read a squashfs or SIF image", _REMEDY)
    base = [program, *(["-offset", str(offset)] if offset else [])]
    found = {}
    for wanted in paths:
        answer = _cat(base, path, wanted, most)
        if answer is None:
            return _unpacked(base, path, paths, most)
        if answer.status == 0:
            found[wanted] = answer.output
    return found


def _cat(base: list[str], image: str, wanted: str, most: int) -> CommandOutput | None:
    """What ``-cat`` says of a file, links followed; None if this unsquashfs has no ``-cat``."""
    inside = posixpath.normpath("/" + wanted).lstrip("/")
    for _ in range(MAX_LINKS):
        answer = ask([*base, "-no-wildcards", "-cat", image, inside], limit=most)
        said = answer.complaint
        if answer.status == 0 or any(word in said for word in _ABSENT):
            return answer
        if "symbolic link" in said:
            target = _link_on(base, image, inside)
            if target is None:
                return answer
            inside = target
        elif "invalid option" in said or "SYNTAX" in said or "SYNTAX" in answer.output.decode("utf-8", "replace"):
            return None
        else:
            raise _unreadable(image, answer)
    return answer


def _link_on(base: list[str], image: str, inside: str) -> str | None:
    """The path with its first symbolic link replaced by what it points to, inside the image."""
    parts = inside.split("/")
    for count in range(1, len(parts) + 1):
        prefix = "/".join(parts[:count])
        listed = ask([*base, "-max-depth", str(count), "-no-wildcards", "-lln", image, prefix])
        mark = f" squashfs-root/{prefix} -> "
        for line in listed.output.decode("utf-8", "replace").splitlines():
            if mark in line:
                target = posixpath.join("/" + posixpath.dirname(prefix), line.split(mark, 1)[1])
                return posixpath.normpath(posixpath.join(target, *parts[count:])).lstrip("/")
    return None


def _unpacked(base: list[str], image: str, paths: Sequence[str], most: int) -> dict[str, bytes]:
    """The way of releases before 4.5; a link that leads to a file that was not asked for is not followed."""
    with tempfile.TemporaryDirectory(prefix="hpcgen-") as work:
        names = [path.lstrip("/") for path in paths]
        answer = ask(
            [*base, "-no-progress", "-no-xattrs", "-dest", f"{work}/root", image, *names],
            before=lambda: _small_files(most),
        )
        if answer.status and "squashfs" in answer.complaint.lower():
            raise _unreadable(image, answer)
        return read_folder(f"{work}/root", paths, most)


def _small_files(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most + 1, most + 1))


def list_squashfs(path: str, wanted: Callable[[str], bool], offset: int = 0) -> set[str]:
    """The paths in a squashfs that are wanted; errors as :func:`read_squashfs`."""
    program = require_program("unsquashfs", "read a squashfs or SIF image", _REMEDY)
    answer = ask([program, *(["-offset", str(offset)] if offset else []), "-l", path], limit=_LISTING)
    if answer.status:
        raise _unreadable(path, answer)
    root = "squashfs-root"
    lines = (line.decode("utf-8", "replace") for line in answer.output.splitlines())
    return {inside for line in lines if line.startswith(root) and wanted(inside := line.removeprefix(root))}


def _unreadable(image: str, answer: CommandOutput) -> InputError:
    return InputError(f"{image} cannot be read by unsquashfs: {answer.last_line}", remedy="copy the image again")


def _unsquash(task: ConversionTask) -> list[ConversionStep]:
    return [
        conversion_command("unsquashfs", "-no-progress", "-no-xattrs", "-dest", task.target, task.source),
        marked(task),
    ]


class SquashfsKind(ImageKind):
    """A file that ch-run and the Container Engine mount."""

    name = "squashfs"
    endings = (".sqfs", ".squashfs", ".sqsh")
    conversions = (ConversionRule("squashfs", "directory", ("unsquashfs",), 2, _unsquash),)

    def recognises(self, path: Path, first: bytes) -> bool:
        """By its first word; its numbers are little-endian."""
        return first[:4] == b"hsqs"

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        return read_squashfs(name, paths, most=most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        return list_squashfs(name, wanted)

    def folders(self, name: str, paths: Sequence[str]) -> set[str] | None:
        return list_squashfs(name, set(paths).__contains__)

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        from hpcgen.images.reading.sources import SquashfsSource

        return nullcontext(SquashfsSource(name))
