"""The compilers and other variables of a Makefile, and what make has to be given where it suits another machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import CompilerFlag, FileWord

USED = re.compile(r"\$[({](\w+)[)}]")
"""A variable where its value is put in."""


_ROW = re.compile(r"\$[({](\w*)\$[({](\w+)[)}][)}]")
_ELSEWHERE = re.compile(
    r"(?<!\S)(?:-fast(?:sse)?|-fno-alias|-q?openmp|-ipo?\d*|-x(?:Host|HOST|CORE-\S+|AVX\S*|MIC-\S+)|-no-prec-div|"
    r"-fp-model[ =]\S+|-mp(?:=\S+)?|-M(?:list|preprocess|ipa\S*|vect\S*|info\S*|noframe|unroll\S*)|-traceback|"
    r"-(?:no-)?ftz|-align \S+|-assume \S+|-check \S+|-warn \S+|-qopt-\S+|-fpp|-[ir]8)(?=\s|$)"
)
"""Options of compilers by Intel and PGI that GNU's refuse, or take for something else: -openmp is -o with a name.

Source: their manuals, from memory; that GCC 12 refuses -fast, -fno-alias, -qopenmp, -mp, -fpp and -r8, and takes
-openmp so, was tried.
"""
_SAME = {"-openmp": "-fopenmp", "-qopenmp": "-fopenmp", "-mp": "-fopenmp", "-fpp": "-cpp", "-r8": "-fdefault-real-8"}
_OF_ANOTHER = re.compile(
    r"(?i)(^|_)(intel|icc|icx|oneapi|pgi|nv\w*|cuda|cray|cce|sun|xlf?|ibm|pathscale|aocc|arm|clang|fujitsu|hip\w*)(_|$)"
)


def gnu_row(values: dict[str, str], assigned: dict[str, FileWord]) -> dict[str, FileWord]:
    """GNU's row of a table of flags by compilers, ``$(FLAGS_$(COMPILER))``, where nothing chooses one."""
    found: dict[str, FileWord] = {}
    for flags, name in (each for value in values.values() for each in _ROW.findall(value)):
        rows = [row for row in ("GNU", "GCC", "gnu", "gcc") if f"{flags}{row}" in assigned]
        if rows and not values.get(name):
            found.setdefault(name, FileWord(rows[0], assigned[f"{flags}{rows[0]}"].where))
    return found


def for_gnu(name: str, value: FileWord, others: list[FileWord]) -> FileWord | None:
    """Flags as GNU's compilers take them; None where these are.

    ``name``: of the variable; flags of one compiler among others stay. ``others``: what the file has in comments, of
    which the first without variables and another compiler's options is taken.
    """
    if not _ELSEWHERE.search(value.text) or _OF_ANOTHER.search(name):
        return None
    plain = " ".join(_ELSEWHERE.sub(lambda match: _SAME.get(match[0], ""), value.text).split())
    good = (each for each in others if "$" not in each.text and not _ELSEWHERE.search(each.text))
    return next(good, FileWord(plain, value.where))


class MakeVariables(Protocol):
    """What is known so far: by name, and in a text."""

    values: dict[str, str]

    def value(self, text: str) -> str: ...


def active(path: str, text: str, known: MakeVariables) -> Iterator[tuple[Position, str, bool]]:
    """Whole lines, continued ones joined, that no condition leaves out, and whether that is sure."""
    stack: list[bool | None] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line, start = lines[number], number + 1
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1]} {lines[number].strip()}"
        number += 1
        words = line.strip()
        if match := re.match(r"(else\s+)?(ifn?(?:eq|def))\b(.*)", words):
            if match[1] and stack:
                before = stack.pop()
                stack.append(False if before else _condition(match[2], match[3], known))
            else:
                stack.append(_condition(match[2], match[3], known))
        elif words.startswith("else") and stack and re.fullmatch(r"else\b\s*(#.*)?", words):
            before = stack.pop()
            stack.append(None if before is None else not before)
        elif re.match(r"endif\b", words) and stack:
            stack.pop()
        elif False not in stack:
            yield Position(path, start, 1), line, None not in stack


def _condition(how: str, text: str, known: MakeVariables) -> bool | None:
    if how in ("ifdef", "ifndef"):
        defined = text.split("#")[0].strip() in known.values
        return defined is (how == "ifdef")
    match = re.match(r"\s*\(\s*(.*?)\s*,\s*(.*?)\s*\)\s*(#.*)?$", text) or re.match(
        r"\s*[\"'](.*?)[\"']\s+[\"'](.*?)[\"']", text
    )
    if match is None:
        return None
    # Of a variable that nothing sets make makes an empty text; functions are not worked out.
    left, right = (USED.sub("", known.value(re.sub(r"\$\(strip (.*?)\)", r"\1", part))) for part in match.group(1, 2))
    if "$" in left + right:
        return None if "findstring" not in left + right else how == "ifneq"
    return (left == right) is (how == "ifeq")


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


_ON = {"no": "yes", "0": "1", "off": "on", "OFF": "ON", "false": "true", "FALSE": "TRUE", "NO": "YES", "n": "y"}


class Assignments:
    """What a Makefile assigns.

    ``set_at``: how and where each variable is set, ``commented``: what comments have for it, ``open``: variables whose
    value is not sure, ``commands``: those that start a command, ``asked``: those that a condition asks for,
    ``switches``: those that turn MPI on.
    """

    def __init__(self) -> None:
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpu_block = ""
        self.values: dict[str, str] = {}
        self.set_at: dict[str, tuple[str, FileWord]] = {}
        self.commented: dict[str, list[FileWord]] = {}
        self.switches: dict[str, FileWord] = {}
        self.stops: list[FileWord] = []
        self.commands: set[str] = set()
        self.asked: set[str] = set()
        self.open: set[str] = set()

    def on_the_command_line(self, by_sources: bool = False) -> dict[str, FileWord]:
        """Variables for make, as the file's own value gives way to the environment or suits another machine.

        ``by_sources``: only sources say that MPI is required, so that the compilers of the file do not have it.
        """
        found: dict[str, FileWord] = {}
        assigned = {name: value for name, (_, value) in self.set_at.items()}
        if self.mpi is None:
            self._switch_on()
        over_mpi = self.mpi is not None or bool(self.switches)
        for name, (how, value) in self.set_at.items():
            if match := COMPILER.fullmatch(name):
                if how == "?=" and MPI_WRAPPER.search(value.text):
                    found[name] = value
                elif (
                    put := compiler_here(match[2], value.text, over_mpi, by_sources, self.fortran is not None)
                ) is not None:
                    found[name] = FileWord(put, value.where)
            elif over_mpi and re.search(r"(^|_)MPI($|_)", name) and value.text in _ON and "NO" not in name.split("_"):
                found[name] = FileWord(_ON[value.text], value.where)
        return {
            **found,
            **gnu_row(self.values, assigned),
            **self._for_gnu(assigned),
            **self.switches,
            **self._for_cpus(),
        }

    def with_flags(self, weak: dict[str, FileWord], flags: Sequence[CompilerFlag]) -> dict[str, FileWord]:
        """Variables for make in which compilers have these options; those that a condition asks stay as they are."""
        found = dict(weak)
        for flag in flags:
            for name, (_, value) in self.set_at.items():
                text = found.get(name, value).text
                command = name in self.commands or COMPILER.fullmatch(name)
                if command and name not in self.asked and language_of(text) == flag.language:
                    found[name] = FileWord(f"{text} {flag.word}", value.where)
        return found

    def _for_gnu(self, assigned: dict[str, FileWord]) -> dict[str, FileWord]:
        """Flags that the file has in comments for GNU compilers, or its own without those of other compilers."""
        closed = {name: value for name, value in assigned.items() if name not in self.open}
        taken = {name: for_gnu(name, value, self.commented.get(name, [])) for name, value in closed.items()}
        return {name: put for name, put in taken.items() if put is not None}

    def _for_cpus(self) -> dict[str, FileWord]:
        """The configuration in comments for GNU's compilers and MPI, where that of the file is for GPUs."""
        assigned = {name: value for name, (_, value) in self.set_at.items()}
        gpus = [value for name, value in assigned.items() if name not in self.open and FOR_GPUS.search(value.text)]
        found = gnu_configuration(assigned, self.commented) if gpus and not self.gpu_block else {}
        if gpus and not found and not self.gpu_block:
            text = f"{gpus[0].text} is for GPUs: `build:` has to set what is for CPUs, or a block to bring the compiler"
            self.stops.append(FileWord(text, gpus[0].where))
        return found

    def _switch_on(self) -> None:
        """Switches that are off, and alternatives in comments, that say MPI, of a file that is serial as it stands."""
        for name, (_, value) in self.set_at.items():
            if re.search(r"(^|_)MPI($|_)", name) and value.text in _ON and "NO" not in name.split("_"):
                self.switches[name] = FileWord(_ON[value.text], value.where)
        for name, others in self.commented.items():
            if name not in self.set_at:
                continue
            for each in others:
                compiler = COMPILER.fullmatch(name) and MPI_WRAPPER.match(each.text)
                if compiler or (re.search(r"(^|_)MPI($|_)", name) and re.match(r"-D\w*MPI|yes|1|on", each.text, re.I)):
                    self.switches.setdefault(name, each)
                    break

    def value(self, text: str) -> str:
        """A text with the variables that are known."""
        for _ in range(6):
            text = USED.sub(lambda match: self.values.get(match[1], match[0]), text)[:4000]
        return text.strip()
