"""Compilers in the variables of a Makefile: which there are, and what an image has in the place of another's."""

from __future__ import annotations

import re

from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.make_text import USED, for_gnu

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
FOR_GPUS = re.compile(r"(?<!\S)(-x (hip|cu)|--hip-link|--offload-arch=\S+|-fopenmp-targets=\S+)(?!\S)")
"""Options of compilers that make code for GPUs alone."""
_APART = 2
"""Lines of comments that are that far apart belong together; a line without a word may be between them."""


def gnu_configuration(assigned: dict[str, FileWord], commented: dict[str, list[FileWord]]) -> dict[str, FileWord]:
    """Of the configurations that a file has in comments the first for GNU's compilers and MPI.

    It has a value for each variable that is for GPUs as the file is.
    """
    blocks: list[dict[str, FileWord]] = []
    last = None
    for name, word in sorted(
        ((name, word) for name, words in commented.items() for word in words), key=lambda each: each[1].where.line
    ):
        if last is None or last.file != word.where.file or word.where.line - last.line > _APART:
            blocks.append({})
        blocks[-1][name] = word
        last = word.where
    gpus = {name for name, value in assigned.items() if FOR_GPUS.search(value.text)}
    for block in blocks:
        values = {name: FileWord(_put_in(word.text, block), word.where) for name, word in block.items()}
        compilers = [value.text for name, value in values.items() if COMPILER.fullmatch(name)]
        strange = any(
            FOR_GPUS.search(each.text) or "$" in each.text or for_gnu(name, each, []) for name, each in values.items()
        )
        if compilers and {*compilers} <= {*_MPI_COMPILERS} and gpus <= {*block} and not strange:
            return {name: value for name, value in values.items() if name in assigned}
    return {}


def _put_in(text: str, values: dict[str, FileWord]) -> str:
    for _ in range(6):
        text = USED.sub(lambda match: values[match[1]].text if match[1] in values else match[0], text)[:4000]
    return " ".join(text.split())


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
