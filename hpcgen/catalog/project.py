"""The files of users' projects that stacks name: read below the folder of the stack's file, again if they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problem, Problems
from hpcgen.core.model.project import BLOCK, PackageFile

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.spack import SpackFile

T = TypeVar("T")
CONDA = "conda_packages"
"""The block whose option ``files`` names files of conda packages."""
SPACK = "spack_packages"
"""The block whose option ``files`` names Spack environments."""


State = tuple[int, int, int, int] | None


class _Kept(NamedTuple):
    """What a file says, and the state of each file that was read for it, by its path from the project's folder."""

    said: Any
    states: Mapping[str, State]


class ProjectFiles:
    """What files of a project say, kept until one of them changes: a session in Python outlives its files."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str, str], _Kept] = {}

    def packages(
        self, document: Document | None, names: Sequence[str], without: Iterable[str] = ()
    ) -> list[PackageFile]:
        """What files of Python packages ask for, in their order.

        document: the stack's file; of a stack that is in none, paths are from the present folder.
        names: their paths from its folder. without: packages of them that are not wanted.
        InputError: a file cannot be read or has mistakes, each with its place.
        """
        from hpcgen.readers.python_files import read_packages

        unwanted = sorted({*without})
        read = partial(read_packages, without=unwanted)
        return self._all(document, names, BLOCK, read, lambda file: file.read, " ".join(unwanted))

    def conda(self, document: Document | None, names: Sequence[str]) -> list[CondaFile]:
        """What files of conda packages ask for; as :meth:`packages`."""
        from hpcgen.readers.conda_files import read_conda

        return self._all(document, names, CONDA, read_conda, lambda file: file.read)

    def spack(self, document: Document | None, names: Sequence[str]) -> list[SpackFile]:
        """What Spack environments ask for; as :meth:`packages`."""
        from hpcgen.readers.spack_env import read_spack

        return self._all(document, names, SPACK, read_spack, lambda file: file.read)

    @staticmethod
    def folder(document: Document | None, block: str = BLOCK) -> Path:
        """The folder that the paths are from."""
        file = document.file_of(files_of(block)) if document is not None else None
        return file.parent if file is not None else Path()

    def _all(
        self,
        document: Document | None,
        names: Sequence[str],
        block: str,
        read: Callable[[Path, str], T],
        of: Callable[[T], Iterable[str]],
        how: str = "",
    ) -> list[T]:
        folder = self.folder(document, block)
        problems = Problems()
        found: list[T] = []
        for number, name in enumerate(names):
            key = (f"{block} {how}", str(folder.absolute()), name)
            try:
                kept = self._read.get(key)
                if kept is None or kept.states != _states(folder, kept.states):
                    # Its own state before it is read: what changes meanwhile is read again.
                    before = _states(folder, [name])
                    said = read(folder, name)
                    kept = self._read[key] = _Kept(said, {**_states(folder, of(said)), **before})
                found.append(kept.said)
            except InputError as error:
                problems += [_placed(each, document, block, name, number) for each in error.problems]
        problems.raise_as(InputError)
        return found


def _states(folder: Path, paths: Iterable[str]) -> dict[str, State]:
    """What tells a changed file from one that is as it was; nothing is read."""
    found: dict[str, State] = {}
    for path in paths:
        try:
            seen = (folder / path).stat()
        except OSError:
            found[path] = None
        else:
            found[path] = (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
    return found


def files_of(block: str) -> list[str | int]:
    """Where a stack names the files of a block."""
    return ["blocks", block, "options", "files"]


def _placed(problem: Problem, document: Document | None, block: str, name: str, number: int) -> Problem:
    """A problem that is nowhere in the file itself: where the stack names it."""
    if isinstance(problem.where, Position):
        return problem
    said = document is not None and document.has(["blocks", block, "options", "files"])
    place = [*files_of(block), number]
    where = document.position(place) if said and document is not None else f"--set {block}.files={name}"
    return replace(problem, where=where, message=f"{name}: {problem.message}")
