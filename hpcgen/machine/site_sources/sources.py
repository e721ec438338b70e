"""Which kinds of files are read, by the name that people give them; several together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, Problems
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.pbs import read_pbs
from hpcgen.machine.site_sources.reframe import read_reframe
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.slurm import read_slurm
from hpcgen.machine.site_sources.spack import read_spack, read_stackinator
from hpcgen.readers.folder import ProjectFolder


class SourceKind(msgspec.Struct, frozen=True):
    """A kind of file.

    read: the folder that may be read, the file in it, what was asked → what it says.
    usual: the file's name in a folder that was given; "" where the folder itself is read.
    shared: files may be links to elsewhere in the folder that holds the one that was given.
    """

    read: Callable[[ProjectFolder, str, SourceSettings], Seen]
    usual: str = ""
    shared: bool = False


SOURCES: dict[str, SourceKind] = {
    "pbs": SourceKind(read_pbs),
    "reframe": SourceKind(read_reframe, usual="settings.py"),
    "slurm": SourceKind(read_slurm, usual="slurm.conf"),
    "spack": SourceKind(read_spack),
    "stackinator": SourceKind(read_stackinator, shared=True),
}
"""By the word before the path."""


def read_source(kind: str, path: Path, asked: SourceSettings) -> Seen:
    """The facts of one source.

    kind: of :data:`SOURCES`.
    path: the file, or the folder that has it.
    asked: what else the person said.
    InputError: it is not there, or is not what it should be; with the places.
    """
    source = SOURCES[kind]
    if not path.exists():
        raise InputError("no such file or folder", str(path), remedy="check the spelling of its path")
    if path.is_dir() and source.usual:
        path = path / source.usual
    folder = path.parent
    if source.shared or path.is_dir():
        # `..` and the present folder have no name to look for in their parent.
        path = path.absolute() if path.name in ("", "..") else path
        folder = path.parent if source.shared else path
    name = "." if folder == path else path.name
    return source.read(ProjectFolder(folder), name, asked)


def read_sources(wanted: Iterable[tuple[str, Path]], asked: SourceSettings) -> list[Seen]:
    """The facts of several, in their order; InputError with what is wrong in any of them."""
    found, problems = list[Seen](), Problems()
    for kind, path in wanted:
        with problems.caught():
            found.append(read_source(kind, path, asked))
    problems.raise_as(InputError)
    return found
