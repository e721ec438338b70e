"""CMakeLists.txt: which programs a project makes, and whether it asks for MPI. Read as text; no variable is worked out.

Form of the language: https://cmake.org/cmake/help/latest/manual/cmake-language.7.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, FileWord, ProgramFile
from hpcgen.readers.folder import ProjectFolder

_CALL = re.compile(r"(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_COMMENT = re.compile(r"#(?!\[=*\[).*")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s";]+)')
_PLACE = re.compile(r"\$\{(?:CMAKE|PROJECT)_(?:CURRENT_)?BINARY_DIR\}/?([\w./-]*)")
_FILES = 50
_GPU_LANGUAGES, _GPU_PACKAGES = {"CUDA", "HIP"}, {"CUDA", "CUDAToolkit", "hip", "HIP"}
NAME = "CMakeLists.txt"


class _Call(NamedTuple):
    name: str
    words: list[str]
    where: Position


def read_cmake(folder: ProjectFolder, path: str = NAME) -> BuildFile:
    """What the file and those of its subfolders say; InputError where one cannot be read."""
    reading = _Reading(folder)
    reading.file(path, "")
    place = reading.place
    return BuildFile(
        path,
        "cmake",
        reading.mpi,
        reading.fortran,
        reading.gpus,
        [ProgramFile(f"{place}/{name.rpartition('/')[2]}" if place else name, at) for name, at in reading.programs],
        list(reading.libraries.values()),
        reading.installs,
        reading.minimum,
    )


class _Reading:
    def __init__(self, folder: ProjectFolder) -> None:
        self.folder = folder
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.minimum: FileWord | None = None
        self.installs: Position | None = None
        self.programs: list[tuple[str, Position]] = []
        self.libraries: dict[str, FileWord] = {}
        self.place: str | None = None
        self._seen: set[str] = set()

    def file(self, path: str, below: str) -> None:
        """One file, whose programs are built in the subfolder ``below``."""
        if path in self._seen or len(self._seen) >= _FILES:
            return
        self._seen.add(path)
        for call in _calls(path, self.folder.text(path)):
            self._call(call, path, below)

    def _call(self, call: _Call, path: str, below: str) -> None:
        words, first = call.words, call.words[0] if call.words else ""
        found = call.name == "find_package" and first in _GPU_PACKAGES
        if found or (call.name in ("project", "enable_language") and _GPU_LANGUAGES & {*words}):
            self.gpus = self.gpus or FileWord(f"{call.name}({' '.join(words)})", call.where)
        if call.name == "find_package" and first == "MPI":
            self.mpi = self.mpi or FileWord(f"find_package({' '.join(words)})", call.where)
            if "Fortran" in words:
                self.fortran = self.fortran or FileWord(f"find_package({' '.join(words)})", call.where)
        elif call.name == "find_package" and first and not found:
            self.libraries.setdefault(first, FileWord(first, call.where))
        elif call.name in ("project", "enable_language") and "Fortran" in words:
            self.fortran = self.fortran or FileWord(f"{call.name}({' '.join(words)})", call.where)
        elif call.name == "cmake_minimum_required" and len(words) > 1:
            self.minimum = self.minimum or FileWord(words[1].partition("...")[0], call.where)
        elif call.name == "add_executable" and re.fullmatch(r"[\w.+-]+", first):
            if not {"IMPORTED", "ALIAS"} & {*words}:
                self.programs.append((f"{below}{first}", call.where))
        elif call.name == "install":
            self.installs = self.installs or call.where
        elif call.name == "set" and first == "CMAKE_RUNTIME_OUTPUT_DIRECTORY" and len(words) > 1:
            match = _PLACE.fullmatch(words[1])
            self.place = match[1].strip("/") if match else self.place
        elif call.name == "add_subdirectory" and re.fullmatch(r"[\w./-]+", first):
            inner = self.folder.beside(path, f"{first}/{NAME}")
            if (self.folder.top / inner).is_file():
                self.file(inner, f"{below}{first.strip('/')}/")


def _calls(path: str, text: str) -> Iterator[_Call]:
    """The commands of a file, comments left out, in their order."""
    plain = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    line, counted = 1, 0
    for match in _CALL.finditer(plain):
        words = [quoted or bare for quoted, bare in _WORD.findall(match[2])]
        start = match.start(1)
        line, counted = line + plain.count("\n", counted, start), start
        where = Position(path, line, start - plain.rfind("\n", 0, start))
        yield _Call(match[1].lower(), [" ".join(word.split()) for word in words], where)
