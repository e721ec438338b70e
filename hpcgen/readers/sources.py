"""Sources of a project: MPI in them, headers that are gone, and the options of compilers that they need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, CompilerFlag, FileWord
from hpcgen.readers.folder import ProjectFolder, ProjectTree
from hpcgen.readers.makefile import read_makefile

SOURCE = re.compile(r"(?:[^/]+/){0,4}[^/]+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|f|F|f77|f90|F90|f95|f03|f08|F08|cu)")
C_SOURCE = re.compile(r".+\.(c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|cu)")
FORTRAN = re.compile(r"(?:[^/]+/){0,4}[^/]+\.(f|F|f77|f90|F90|f95|F95|f03|F03|f08|F08|inc|h)")
_USES_MPI = re.compile(
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
        elif depth <= 0 and (found := _USES_MPI.match(line)):
            return FileWord(" ".join(found[1].split()), Position(path, number, 1))
    return None


def asks_for_fortran_mpi(folder: ProjectFolder, path: str) -> FileWord | None:
    """The first line that uses MPI's Fortran bindings, under whatever condition."""
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if (found := _USES_MPI.match(line)) and "mpi.h" not in line.lower().replace("mpif.h", ""):
            return FileWord(" ".join(found[1].split()), Position(path, number, 1))
    return None


class RemovedHeader(NamedTuple):
    """``since``: the release that dropped it; ``instead``: what to write in its place."""

    since: str
    instead: str


REMOVED = {
    "sys/sysctl.h": RemovedHeader("glibc 2.32", "sysconf() and the files below /proc say the same"),
    "rpc/rpc.h": RemovedHeader("glibc 2.32", "libtirpc-dev has it, with -I/usr/include/tirpc and -ltirpc"),
    "xlocale.h": RemovedHeader("glibc 2.26", "locale.h has what it declared"),
    "ustat.h": RemovedHeader("glibc 2.28", "sys/statvfs.h has statvfs()"),
    "sys/ustat.h": RemovedHeader("glibc 2.28", "sys/statvfs.h has statvfs()"),
    "stropts.h": RemovedHeader("glibc 2.30", "Linux never had STREAMS; sys/ioctl.h has ioctl()"),
    "iostream.h": RemovedHeader("GCC 4.3", "<iostream>, with std::"),
    "fstream.h": RemovedHeader("GCC 4.3", "<fstream>, with std::"),
}
"""Sources: glibc's NEWS of 2.32 and 2.26, https://fedoraproject.org/wiki/Changes/SunRPCRemoval and
https://gcc.gnu.org/gcc-4.3/porting_to.html; the releases of ustat.h and stropts.h are from memory, not verified. That
Debian 12 (glibc 2.36, GCC 12) has none of them was tried."""
_INCLUDED = re.compile(r"\s*#\s*include\s*([<\"])([\w./+-]+)[>\"]")
_CONDITION = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b\s*(.*)")
_HERE = r"__linux__|__linux|linux|__unix__|__unix|__GNUC__"
_ELSEWHERE = r"__APPLE__|__APPLE_CC__|__MACH__|__(Free|Net|Open)BSD__|BSD|_WIN32|WIN32|_MSC_VER|__CYGWIN__|_AIX|__sun"


def removed_header(folder: ProjectFolder, path: str) -> FileWord | None:
    """The line of a source that surely includes such a header, in words; None where none does.

    Conditions on the system are followed; behind any other one an include is not sure.
    """
    for each in includes(folder, path):
        if each.sure and each.system and (header := REMOVED.get(each.name)) is not None:
            text = f"#include <{each.name}>: {header.since} dropped it, and the build stops at it; {header.instead}"
            return FileWord(text, Position(path, each.line, 1))
    return None


class Include(NamedTuple):
    """``system``: its name stands in <>. ``sure``: no condition leaves it out."""

    name: str
    line: int
    system: bool
    sure: bool


def includes(folder: ProjectFolder, path: str) -> Iterator[Include]:
    """The files that a source includes; conditions on the system are followed."""
    stack: list[bool | None] = []
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if match := _CONDITION.match(line):
            _follow(match[1], match[2], stack)
        elif match := _INCLUDED.match(line):
            yield Include(match[2], number, match[1] == "<", all(stack))


def _follow(word: str, rest: str, stack: list[bool | None]) -> None:
    if word.startswith("if"):
        stack.append(_holds(word, rest.strip()))
    elif stack and word == "endif":
        stack.pop()
    elif stack and word == "else":
        stack[-1] = None if stack[-1] is None else not stack[-1]
    elif stack:
        # What is not sure before stays so; behind a branch that is taken nothing is.
        stack[-1] = False if stack[-1] else None if stack[-1] is None else _holds("if", rest.strip())


def _holds(word: str, text: str) -> bool | None:
    """None where it is not known. The guard of a header is none that leaves anything out."""
    name = re.match(r"!?\s*(?:defined\s*\(?\s*)?(\w+)\)?\s*(?:/[/*].*)?$", text)
    if name is None:
        return None
    negated = (word == "ifndef") != text.startswith("!")
    if re.fullmatch(_HERE, name[1]) or re.fullmatch(_ELSEWHERE, name[1]):
        return bool(re.fullmatch(_HERE, name[1])) is not negated
    return True if word == "ifndef" and re.search(r"_(H|HH|HPP|H_INCLUDED)_*$", name[1], re.I) else None


CXX_SOURCE = re.compile(r".+\.(cc|cpp|cxx|c\+\+|C)")
_MPIF = re.compile(r"\s*#?\s*include\s*['\"<]mpif\.h", re.I)
_USES = {
    "limits": re.compile(r"\bnumeric_limits\s*<"),
    "cstdint": re.compile(r"(?<![\w.>-])(?:std::)?u?int(?:8|16|32|64)_t\b"),
}
"""Sources: https://gcc.gnu.org/gcc-11/porting_to.html and https://gcc.gnu.org/gcc-13/porting_to.html."""
_WITHOUT = re.compile(
    r"algorithm|array|bitset|c(assert|ctype|errno|float|inttypes|limits|math|stddef|stdint|stdio|stdlib|string|time)|"
    r"complex|(inttypes|stdint)\.h|limits|"
    r"deque|exception|fstream|functional|initializer_list|io(manip|s|sfwd|stream)|istream|iterator|list|map|memory|new|"
    r"numeric|ostream|queue|set|sstream|stack|stdexcept|string|string_view|tuple|type_traits|typeinfo|"
    r"unordered_(map|set)|utility|vector|(assert|ctype|errno|float|limits|math|omp|signal|stdio|stdlib|string|time|"
    r"unistd|sys/stat|sys/time)\.h"
)
"""Headers that do not bring the two in every release of GCC; what any other brings is not known."""
_BRINGING = {
    "limits": {"limits", "cmath", "complex", "math.h"},
    "cstdint": {"cstdint", "stdint.h", "cinttypes", "inttypes.h"},
}
"""Of those the ones that bring it with GCC 12, where it was tried, beside the header itself."""
_THEMSELVES = {"limits"} | _BRINGING["cstdint"]
_DEEPEST = 200


def old_mpi_calls(folder: ProjectFolder, path: str) -> CompilerFlag | None:
    """GNU's option for calls by mpif.h, which declares no arguments, so that each call is taken for their type.

    GCC 10 refuses such calls with arguments of several types; -std=legacy allows them, and older releases, which
    do not know -fallow-argument-mismatch, take it too.
    Source: https://gcc.gnu.org/onlinedocs/gfortran/Fortran-Dialect-Options.html
    """
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if _MPIF.match(line):
            said = "mpif.h declares no arguments, and GCC 10 and later refuse calls with arguments of several types"
            return CompilerFlag("Fortran", "-std=legacy", said, Position(path, number, 1))
    return None


class UsedHeaders(NamedTuple):
    """Of one file: what it includes, and where it first uses something of each header that others may not bring."""

    included: list[Include]
    used: dict[str, Position]


def used_headers(folder: ProjectFolder, path: str) -> UsedHeaders:
    """What a source or a header uses and includes."""
    lines = list(enumerate(folder.text(path).split("\n"), 1))
    found: dict[str, Position] = {}
    for name, word in _USES.items():
        for number, line in lines:
            plain = "" if line.lstrip().startswith(("*", "/*")) else line.partition("//")[0]
            if word.search(plain):
                found[name] = Position(path, number, 1)
                break
    return UsedHeaders(list(includes(folder, path)), found)


def headers_not_included(
    path: str, known: Callable[[str], UsedHeaders | None], own: Callable[[str, str], str | None]
) -> Iterable[CompilerFlag]:
    """An option for each header that a source surely lacks, because nothing that it includes has brought it.

    ``known``: what is read of a file of the project. ``own``: the project's file that an include of another means; None
    for a header from elsewhere.
    """
    seen, reached, used = [path], set[str](), dict[str, Position]()
    for each in seen:
        said = known(each)
        if said is None:
            return
        used = {**said.used, **used}
        for include in said.included:
            there = own(each, include.name)
            # Who includes the header itself under some condition has thought of it.
            if there is None and (include.sure or include.name in _THEMSELVES):
                reached.add(include.name)
            elif there is not None and there not in seen and len(seen) < _DEEPEST:
                seen.append(there)
    for header, where in used.items():
        if all(_WITHOUT.fullmatch(name) and name not in _BRINGING[header] for name in reached):
            what = "std::numeric_limits" if header == "limits" else "an integer of fixed width"
            text = f"{what} without <{header}>, which other headers of GCC 11 and 13 no longer bring"
            yield CompilerFlag("CXX", f"-include {header}", text, where)


def loses_flags(folder: ProjectFolder, path: str, language: str) -> Position | None:
    """The line of a file of CMake that gives flags of its own in the place of those of the command line."""
    name = f"CMAKE_{language}_FLAGS"
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        if re.match(rf"\s*set\s*\(\s*{name}\s+(?!.*\$\{{{name}\}})(?!.*\bCACHE\b)\S", line, re.I):
            return Position(path, number, 1)
    return None


T = TypeVar("T")
_CMAKE = re.compile(r"(?:[^/]+/){0,4}(?:CMakeLists\.txt|[^/]+\.cmake)")


class _Read(Protocol):
    def __call__(self, reader: Callable[[ProjectFolder, str], T], path: str) -> T | None: ...


def with_needed_flags(
    build: BuildFile, tree: ProjectTree, sources: list[str], read: _Read, by_sources: FileWord | None
) -> BuildFile:
    """With the options without which compilers of today refuse a source, or with what keeps it from getting them.

    ``read``: reads a file with a reader; None where nothing of it can be read. ``by_sources``: the line of a source
    that requires MPI, where no file of the build does.
    """
    flags = _needed(build, tree, sources, read)
    if not flags:
        return build
    if build.kind == "make":
        again = read(partial(read_makefile, by_sources=by_sources, flags=flags), build.file)
        build = replace(build, weak=again.weak if again is not None else {})
        taken = [flag for flag in flags if any(flag.word in each.text for each in build.weak.values())]
    else:
        files = [each.path for each in tree.files if build.kind == "cmake" and _CMAKE.fullmatch(each.path)]
        taken = [
            flag
            for flag in flags
            if build.kind in ("cmake", "autotools", "meson")
            and not any(read(partial(loses_flags, language=flag.language), path) for path in files)
        ]
    said = [(flag, FileWord(f"{flag.said}: the compiler needs {flag.word}", flag.where)) for flag in flags]
    # Whether calls do have arguments of several types is not known.
    stops = [word for flag, word in said if flag not in taken and flag.language == "CXX"]
    remarks = [word for flag, word in said if flag not in taken and flag.language != "CXX"]
    return replace(build, flags=taken, stops=[*build.stops, *stops], remarks=[*build.remarks, *remarks])


def _needed(build: BuildFile, tree: ProjectTree, sources: list[str], read: _Read) -> list[CompilerFlag]:
    places: dict[str, list[str]] = {}
    for each in tree.files:
        places.setdefault(each.path.rpartition("/")[2], []).append(each.path)

    def own(source: str, name: str) -> str | None:
        beside = f"{source.rpartition('/')[0]}/{name}".lstrip("/")
        there = [path for path in places.get(name.rpartition("/")[2], []) if f"/{path}".endswith(f"/{name}")]
        return beside if beside in there else next(iter(there), None)

    known = cache(partial(read, used_headers))
    fortran = (read(old_mpi_calls, path) for path in sources if FORTRAN.fullmatch(path))
    flag = next(filter(None, fortran), None) if build.mpi is not None and build.fortran is not None else None
    found = {flag.word: flag} if flag is not None else {}
    for path in sources:
        for lacking in headers_not_included(path, known, own) if CXX_SOURCE.fullmatch(path) else ():
            found.setdefault(lacking.word, lacking)
    return list(found.values())
