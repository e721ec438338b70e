"""Makefiles: whether they call an MPI's compilers, and which program they make. Read as text; make is not started."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, FileWord, ProgramFile
from hpcgen.readers.folder import ProjectFolder

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
    reading = _Reading(path)
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


class _Reading:
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
