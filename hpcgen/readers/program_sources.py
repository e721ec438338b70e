"""What CMakeLists.txt and Makefiles say of a project's programs. Read as text; nothing is run.

Form of CMake's language: https://cmake.org/cmake/help/latest/manual/cmake-language.7.html. No variable is worked out.
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


NAMES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which GNU make takes them: https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html."""
_MPI = re.compile(
    r"(?<![\w/.-])(mpi(?:cc|cxx|c\+\+|CC|icc|icpc|icx|icpx|gcc|gxx|fort|f77|f90|f08|ifort|ifx)|h5pcc)(?![\w-])"
)
_FORTRAN = re.compile(r"(?<![\w/.-])(gfortran|mpifort|mpif77|mpif90|mpif08|mpiifort|mpiifx|\$[({]FC[)}])(?![\w-])")
_GPUS = re.compile(r"(?<![\w.-])(nvcc|hipcc)(?![\w-])")
_ASSIGNED = re.compile(r"^[ ]*(?:export[ ]+)?([\w.]+)[ \t]*(\?=|::?=|=)[ \t]*(.*?)[ \t]*$")
_RULE = re.compile(r"^([^\s#:=][^:=]*):(?!=)(?!:)[ \t]*([^#=]*)")
_USED = re.compile(r"\$[({](\w+)[)}]")
_OUTPUT = re.compile(r"(?<=\s)-o[ \t]+(\$@|[\w./$(){}-]+)")
_COMPILERS = ("CC", "CXX", "FC", "LD")


def read_makefile(folder: ProjectFolder, path: str) -> BuildFile:
    """What the file says; InputError where it cannot be read."""
    reading = _Makefile(path)
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        reading.line(number, line)
    return BuildFile(
        path,
        "make",
        reading.mpi,
        reading.fortran,
        reading.gpus,
        reading.programs(),
        installs=reading.rules["install"][0] if "install" in reading.rules else None,
        weak=reading.weak,
    )


class _Makefile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.weak: dict[str, FileWord] = {}
        self.values: dict[str, str] = {}
        self.rules: dict[str, tuple[Position, list[str]]] = {}
        self._target = ""
        self._linked: dict[str, Position] = {}

    def line(self, number: int, line: str) -> None:
        """One line of it."""
        text = line.partition("#")[0]
        self.mpi = self.mpi or self._said(_MPI, text, number)
        self.fortran = self.fortran or self._said(_FORTRAN, text, number)
        self.gpus = self.gpus or self._said(_GPUS, text, number)
        if line.startswith("\t"):
            if (match := _OUTPUT.search(text)) and not re.search(r"(?<=\s)-c(?=\s)", text):
                name = self._target if match[1] == "$@" else self._value(match[1])
                self._linked.setdefault(name, Position(self.path, number, match.start(1) + 1))
        elif match := _ASSIGNED.match(text):
            where = Position(self.path, number, match.start(3) + 1)
            if match[2] == "?=" and match[1] in _COMPILERS and _MPI.search(match[3]):
                self.weak[match[1]] = FileWord(match[3], where)
            self.values.setdefault(match[1], match[3])
        elif match := _RULE.match(text):
            where = Position(self.path, number, 1)
            for each in match[1].split():
                self._target = self._value(each)
                self.rules.setdefault(self._target, (where, [self._value(word) for word in match[2].split()]))

    def programs(self) -> list[ProgramFile]:
        """What is linked, that which the first rule asks for before the others."""
        plain = {
            name: where
            for name, where in self._linked.items()
            if re.fullmatch(r"(?!/)[\w.+/-]+", name) and ".." not in name
        }
        first = next((name for name in self.rules if not name.startswith(".")), "")
        asked = [first, *self.rules.get(first, (None, []))[1]]
        ordered = sorted(plain, key=lambda name: asked.index(name) if name in asked else len(asked))
        return [ProgramFile(name, plain[name]) for name in ordered]

    def _value(self, text: str) -> str:
        for _ in range(4):
            text = _USED.sub(lambda match: self.values.get(match[1], match[0]), text)
        return text.strip()[:200]

    def _said(self, pattern: re.Pattern[str], text: str, number: int) -> FileWord | None:
        match = pattern.search(text)
        return FileWord(match[1], Position(self.path, number, match.start(1) + 1)) if match else None
