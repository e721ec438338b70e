"""Compilers in the variables of a Makefile: which there are, and what an image has in the place of another's."""

from __future__ import annotations

import re

_MPI_COMPILERS = {
    "mpicc": "C",
    "mpicxx": "CXX",
    "mpic++": "CXX",
    "mpifort": "Fortran",
    "mpif90": "Fortran",
    "mpif77": "Fortran",
}
"""What every image with an MPI has."""
MPI_WRAPPER = re.compile(
    r"(?<![\w/.-])(mpi(?:cc|cxx|c\+\+|CC|icc|icpc|icx|icpx|gcc|gxx|g\+\+|clang|fort|f77|f90|f08|ifort|ifx|xlc\w*|xlf\w*)"
    r"|h5pcc)(?![\w-])"
)
COMPILER = re.compile(r"(MPI_?|SER|HOST)?(CC|CXX|CPP_COMPILER|FC|F90|F77|LD|LINKER|LINK)")
_LANGUAGE = {"CC": "C", "CXX": "CXX", "FC": "Fortran", "F90": "Fortran", "F77": "Fortran"}
_PLAIN_COMPILERS = {"C": "gcc", "CXX": "g++", "Fortran": "gfortran"}


def compiler_here(role: str, value: str, over_mpi: bool, by_sources: bool, fortran: bool) -> str | None:
    """The value for an image, where a file names a compiler that no image has; None where it has it.

    Parameters
    ----------
    role: of the variable: CC, CXX, FC, LD, …. value: what the file gives it.
    over_mpi: the project is compiled with MPI. by_sources: only its sources say so, the file's compilers have none.
    fortran: something of the project is in Fortran, which a linker may be for.
    """
    first, _, rest = value.partition(" ")
    program = first.rpartition("/")[2]
    if not first or first.startswith(("$", "@")) or first in _MPI_COMPILERS:
        return None
    if first == "cc" and not over_mpi:
        return None
    plain = by_sources and re.fullmatch(r"(gcc|g\+\+|c\+\+|gfortran|clang(\+\+)?)(-[\d.]+)?", first)
    elsewhere = (
        plain
        or "/" in first
        or MPI_WRAPPER.fullmatch(first)
        or re.fullmatch(
            r"(ic[cx]|icpc|icpx|ifort|ifx|pg\w+|nv(c|c\+\+|fortran)|xl\w+|cray\w*|CC|cc|ftn|armclang\w*|fcc\w*|FCC\w*)",
            first,
        )
    )
    if not elsewhere:
        return None
    language = _LANGUAGE.get(role) or ("CXX" if re.search(r"\+\+|xx|pc|CC", program) else "C")
    if role in ("LD", "LINKER", "LINK") and fortran and re.search(r"f(or)?t|90|77", program):
        language = "Fortran"
    wrapper = bool(MPI_WRAPPER.fullmatch(program)) or by_sources or (over_mpi and first in ("cc", "CC", "ftn"))
    by_mpi = {"C": "mpicc", "CXX": "mpicxx", "Fortran": "mpifort"}
    return " ".join(filter(None, [(by_mpi if wrapper else _PLAIN_COMPILERS)[language], rest]))


def language_of(value: str) -> str | None:
    """What the compiler of GNU or of MPI is for that a variable holds; None for anything else."""
    first = value.split(" ")[0]
    return _MPI_COMPILERS.get(first) or {name: each for each, name in _PLAIN_COMPILERS.items()}.get(first)
