"""configure.ac and Makefile.am: programs, the options of ``configure``, libraries. Read as text; nothing is run.

Forms: https://www.gnu.org/software/autoconf/manual/autoconf.html and …/automake/manual/automake.html
"""

from __future__ import annotations

import re
from itertools import islice

from hpcgen.core.errors import HpcgenError, Position
from hpcgen.core.model.own_project import BuildFile, BuildOption, FileWord, WantedLibrary
from hpcgen.readers.built_programs import Built, in_order, program_files
from hpcgen.readers.folder import ProjectFolder

NAMES = ("configure.ac", "configure.in")
_MACRO = re.compile(r"(?m)\b([A-Z][A-Z0-9]+_[A-Z0-9_]+)\s*\(|^[ \t]*([A-Z][A-Z0-9]+_[A-Z0-9_]+)[ \t]*$")
_MPI = re.compile(r"(AX|ACX|LX|AM|X_AC|OAC)\w*_MPI\w*|AX_MPI\w*")
_LIBRARY = re.compile(
    r"(?:AX|ACX|AM)_(?:LIB|PATH|CHECK)?_?(HDF5|NETCDF|GSL|BLAS|LAPACK|FFTW3?|ZLIB|METIS|GMP|CFITSIO)\d?"
)
"""Macros of the Autoconf Archive and their like that look for one library, which is required."""
_COMMENT = re.compile(r"(?m)(^|[ \t])(dnl\b|#(?!\s*(?:include|define|undef|if|endif))).*$")
_PATTERN = re.compile(r"(?m)^[ \t]*[^\s()]+\)(?=[ \t]*(?:;;|$))")
"""Of a shell's ``case``."""
_SWITCH = {"AC_ARG_WITH": "with", "AC_ARG_ENABLE": "enable"}
_SYSTEM = {"m", "pthread", "dl", "rt", "c", "stdc++", "nsl", "socket", "util", "gfortran", "gomp"}
_BOOTSTRAPS = ("bootstrap", "bootstrap.sh", "autogen.sh", "autogen", "buildconf")
_MADE = re.compile(r"^[ ]*(bin|sbin|libexec|noinst|\w*exec)_PROGRAMS[ \t]*\+?=[ \t]*(.*)$", re.M)
_SUBDIRECTORIES = re.compile(r"^[ ]*SUBDIRS[ \t]*\+?=[ \t]*(.*)$", re.M)
_FILES, _MOST, _LONGEST = 40, 3000, 6000
"""Files, macros, characters of a macro."""


def read_autotools(folder: ProjectFolder, path: str) -> BuildFile:
    """What ``configure`` is asked to do, and what the build makes; InputError where the file cannot be read."""
    reading = _Configure(folder, path)
    above = path.rpartition("/")[0]
    before, tools = _bootstrap(folder, above, path, reading.modules)
    return BuildFile(
        path,
        "autotools",
        above,
        reading.mpi,
        reading.fortran,
        reading.gpus,
        programs=program_files(in_order(_programs(folder, above), reading.project)),
        libraries=list(reading.libraries.values()),
        options=reading.options,
        installs=Position(path, 1, 1),
        before=before,
        tools=tools,
    )


class _Configure:
    def __init__(self, folder: ProjectFolder, path: str) -> None:
        self.project = ""
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.options: list[BuildOption] = []
        self.libraries: dict[str, WantedLibrary] = {}
        self.modules = False
        text = folder.text(path)
        plain = _COMMENT.sub(lambda match: " " * len(match[0]), text)
        plain = _PATTERN.sub(lambda match: " " * len(match[0]), plain)
        depth, at, line, counted = 0, 0, 1, 0
        for match in islice(_MACRO.finditer(plain), _MOST):
            between = plain[at : match.start()]
            depth += between.count("(") + between.count("[") - between.count(")") - between.count("]")
            depth += len(re.findall(r"(?m)(?:^|;)\s*(?:if|case)\b", between))
            depth -= len(re.findall(r"(?m)(?:^|;|\s)(?:fi|esac)\b", between))
            depth, at = max(depth, 0), match.start()
            line, counted = line + plain.count("\n", counted, at), at
            where = Position(path, line, at - plain.rfind("\n", 0, at))
            self._macro(match[1] or match[2], _arguments(plain, match.end()) if match[1] else [], where, depth <= 0)

    def _macro(self, name: str, words: list[str], where: Position, outermost: bool) -> None:
        first = words[0] if words else ""
        if name == "AC_INIT":
            self.project = re.sub(r"\W", "", first)
        elif name in ("AC_PROG_FC", "AC_PROG_F77"):
            self.fortran = self.fortran or FileWord(name, where)
        elif name in _SWITCH:
            self._switch(_SWITCH[name], words, where)
        elif name in ("AC_CHECK_LIB", "AC_SEARCH_LIBS"):
            listed = first if name == "AC_CHECK_LIB" else words[1] if len(words) > 1 else ""
            for library in listed.split()[:1]:
                if re.match(r"mpi", library):
                    self.mpi = self.mpi or FileWord(f"{name}([{library}])", where)
                elif library not in _SYSTEM:
                    self._wanted(library, f"{name}([{library}])", where, outermost and len(words) < 4)
        elif name == "PKG_CHECK_MODULES" and len(words) > 1:
            self.modules = True
            for module in re.findall(r"(?<![<>=.\d$\w])[A-Za-z][\w+.-]*", words[1]):
                self._wanted(module, f"{name}([{module}])", where, outermost and len(words) < 4)
        elif match := _LIBRARY.fullmatch(name):
            # Shell that stands around a macro is indented, where it is there at all.
            self._wanted(match[1], name, where, outermost or where.column == 1)
        elif _MPI.fullmatch(name):
            self.mpi = self.mpi or FileWord(name, where)
        elif re.search(r"CUDA|NVCC|_HIP", name):
            self.gpus = self.gpus or FileWord(name, where)

    def _switch(self, kind: str, words: list[str], where: Position) -> None:
        name = words[0] if words else ""
        unless = words[3] if len(words) > 3 else ""
        said = " ".join(words[1].split()) if len(words) > 1 else ""
        off = re.search(rf"{kind}_{re.escape(name)}=\"?no\b|=no\b", unless) or re.search(r"default[ =:is]*no\b", said)
        if re.fullmatch(r"mpi|parallel", name, re.I):
            self.mpi = self.mpi or FileWord(f"--{kind}-{name}", where)
            if off:
                self.options.append(BuildOption(f"--{kind}-{name}", _help(said), where))

    def _wanted(self, name: str, asked: str, where: Position, required: bool) -> None:
        if re.fullmatch(r"[\w+.-]+", name):
            known = self.libraries.get(name)
            if known is None or (required and not known.required):
                self.libraries[name] = WantedLibrary(name, asked, where, required)


def _help(text: str) -> str:
    match = re.search(r"AS_HELP_STRING\(\[[^\]]*\],\s*\[?([^\]@(]*)", text)
    return " ".join((match[1] if match else text).split())[:120]


def _arguments(text: str, start: int) -> list[str]:
    """What stands between a macro's parentheses, apart at commas; quotes of one level are taken off."""
    found, depth, quoted, begun = [], 0, 0, start
    for number in range(start, min(len(text), start + _LONGEST)):
        sign = text[number]
        quoted += (sign == "[") - (sign == "]")
        if quoted:
            continue
        if (sign == ")" and depth == 0) or (sign == "," and depth == 0):
            found.append(text[begun:number].strip())
            begun = number + 1
            if sign == ")":
                break
        depth += (sign == "(") - (sign == ")")
    return [each[1:-1].strip() if each[:1] == "[" and each[-1:] == "]" else each for each in found]


def _bootstrap(folder: ProjectFolder, above: str, path: str, modules: bool) -> tuple[list[FileWord], list[str]]:
    """What makes ``configure``, where the project comes without it, and the packages that this takes."""
    top = folder.top / above
    if (top / "configure").is_file():
        return [], []
    script = next((name for name in _BOOTSTRAPS if (top / name).is_file()), None)
    said = f"NOCONFIGURE=1 sh ./{script}" if script else "autoreconf -i"
    return [FileWord(said, Position(path, 1, 1))], [
        "autoconf",
        "automake",
        "libtool",
        *(["pkg-config"] if modules else []),
    ]


def _programs(folder: ProjectFolder, above: str) -> list[Built]:
    found: list[Built] = []
    _automake(folder, above, "", found, set())
    return found


def _automake(folder: ProjectFolder, above: str, below: str, found: list[Built], seen: set[str]) -> None:
    here = "/".join(part for part in (above, below) if part)
    path = f"{here}/Makefile.am".lstrip("/")
    if path in seen or len(seen) >= _FILES or not (folder.top / path).is_file() or not folder.holds(path):
        return
    seen.add(path)
    try:
        text = folder.text(path).replace("\\\n", "  ")
    except HpcgenError:
        return
    lines = folder.text(path)
    for match in _MADE.finditer(text):
        line = lines.count("\n", 0, lines.find(match[0].split()[0])) + 1
        for name in match[2].partition("#")[0].split():
            if re.fullmatch(r"[\w.+-]+", name):
                installed = match[1] != "noinst"
                place = f"$PREFIX/bin/{name}" if installed else f"{here}/{name}".lstrip("/")
                found.append(Built(place, Position(path, line, 1), below, installed=installed))
    for match in _SUBDIRECTORIES.finditer(text):
        for name in match[1].partition("#")[0].split():
            if name != "." and re.fullmatch(r"[\w./-]+", name):
                _automake(folder, above, f"{below}/{name}".strip("/"), found, seen)
