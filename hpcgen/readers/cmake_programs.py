"""The programs that a project of CMake makes, as its commands add and describe them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hpcgen.core.errors import Position
from hpcgen.readers.built_programs import Built

_PROGRAM = re.compile(r"[\w.+-]+")
_OVER_MPI = re.compile(r"\bMPI::|MPI_\w*LIB")


class CMakePrograms:
    """What was added so far, by the names of the targets; ``installs``: the first command that installs anything."""

    def __init__(self) -> None:
        self.installs: Position | None = None
        self._added: dict[str, Built] = {}
        self._installed: set[str] = set()

    def built(self) -> list[Built]:
        """All of them."""
        return [each._replace(installed=name in self._installed) for name, each in self._added.items()]

    def add(self, words: Sequence[str], where: Position, folder: str, sure: bool, output: str) -> None:
        """add_executable; ``output``: the folder where programs are put then."""
        name = words[1] if words[0] == "NAME" and len(words) > 1 else words[0]
        if not {"IMPORTED", "ALIAS"} & {*words} and _PROGRAM.fullmatch(name):
            self._added.setdefault(name, Built(f"{output}/{name}", where, folder, None, sure=sure))

    def describe(self, words: Sequence[str], output: Callable[[str], str]) -> None:
        """set_target_properties; ``output``: the folder that a value means."""
        start = words.index("PROPERTIES") if "PROPERTIES" in words else len(words)
        pairs = dict(zip(words[start + 1 :: 2], words[start + 2 :: 2], strict=False))
        for name in words[:start]:
            if (built := self._added.get(name)) is not None:
                folder, _, own = built.path.rpartition("/")
                folder = output(pairs["RUNTIME_OUTPUT_DIRECTORY"]) if "RUNTIME_OUTPUT_DIRECTORY" in pairs else folder
                self._added[name] = built._replace(path=f"{folder}/{pairs.get('OUTPUT_NAME', own)}")

    def link(self, words: Sequence[str]) -> None:
        """target_link_libraries."""
        if words[0] in self._added and _OVER_MPI.search(" ".join(words)):
            self._added[words[0]] = self._added[words[0]]._replace(mpi=True)

    def install(self, words: Sequence[str], where: Position) -> None:
        """install."""
        self.installs = self.installs or where
        if words[0] == "TARGETS":
            self._installed |= {part for word in words for part in word.split(";")}
