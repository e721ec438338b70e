"""The files of users' projects that stacks name: read below the folder of the stack's file, once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpcgen.config.yamlfile import Document
from hpcgen.errors import InputError, Position, Problem, Problems
from hpcgen.model.project import BLOCK

if TYPE_CHECKING:
    from hpcgen.model.requirement import PackageFile

FILES: list[str | int] = ["blocks", BLOCK, "options", "files"]
"""Where a stack names them."""


class ProjectFiles:
    """What files of a project say, kept from the first time that they are asked for."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], PackageFile] = {}

    def packages(self, document: Document | None, names: Sequence[str]) -> list[PackageFile]:
        """What the files ask for, in their order.

        Parameters
        ----------
        document: the stack's file; of a stack that is in none, paths are from the present folder.
        names: their paths from its folder.

        Raises
        ------
        InputError: a file cannot be read or has mistakes, each with its place.
        """
        folder = self.folder(document)
        problems = Problems()
        found = []
        for number, name in enumerate(names):
            try:
                found.append(self._file(folder, name))
            except InputError as error:
                problems += [_placed(each, document, name, number) for each in error.problems]
        problems.raise_as(InputError)
        return found

    @staticmethod
    def folder(document: Document | None) -> Path:
        """The folder that the paths are from."""
        file = document.file_of(FILES) if document is not None else None
        return file.parent if file is not None else Path()

    def _file(self, folder: Path, name: str) -> PackageFile:
        from hpcgen.project_files.python_files import read_packages

        key = (str(folder.absolute()), name)
        if key not in self._read:
            self._read[key] = read_packages(folder, name)
        return self._read[key]


def _placed(problem: Problem, document: Document | None, name: str, number: int) -> Problem:
    """A problem that is nowhere in the file itself: where the stack names it."""
    if isinstance(problem.where, Position):
        return problem
    said = document is not None and document.has(["blocks", BLOCK, "options", "files"])
    where = document.position([*FILES, number]) if said and document is not None else f"--set {BLOCK}.files={name}"
    return replace(problem, where=where, message=f"{name}: {problem.message}")
