"""Whether a source in C, C++ or Fortran cannot be compiled without MPI."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import ProjectFolder

SOURCE = re.compile(r"(?:[^/]+/){0,4}[^/]+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|f|F|f77|f90|F90|f95|f03|f08|F08|cu)")
C_SOURCE = re.compile(r".+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|cu)")
FORTRAN = re.compile(r"(?:[^/]+/){0,4}[^/]+\.(f|F|f77|f90|F90|f95|F95|f03|F03|f08|F08|inc|h)")
_USES = re.compile(
    r"\s*(#\s*include\s*[<\"]mpi\.h[>\"]|use\s*(?:,\s*intrinsic\s*)?(?:::)?\s*mpi(?:_f08)?\b|include\s*['\"]mpif\.h)",
    re.I,
)


def asks_for_mpi(folder: ProjectFolder, path: str) -> FileWord | None:
    """The line that brings MPI in, where no condition of the preprocessor leaves it out; its own guard is none."""
    depth = 0
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if match := re.match(r"\s*#\s*(if\w*|endif)\b\s*(.*)", line):
            guard = match[1] == "ifndef" and re.search(r"_(H|HH|HPP|INCLUDED?|HEADER)_*$", match[2].strip())
            depth += 0 if guard else -1 if match[1] == "endif" else 1
        elif depth <= 0 and (found := _USES.match(line)):
            return FileWord(" ".join(found[1].split()), Position(path, number, 1))
    return None


def asks_for_fortran_mpi(folder: ProjectFolder, path: str) -> FileWord | None:
    """The first line that uses MPI's Fortran bindings, under whatever condition."""
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if (found := _USES.match(line)) and "mpi.h" not in line.lower().replace("mpif.h", ""):
            return FileWord(" ".join(found[1].split()), Position(path, number, 1))
    return None
