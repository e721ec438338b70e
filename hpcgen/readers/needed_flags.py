"""Options of compilers that the sources of a project need, and whether its build takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from hpcgen.core.model.own_project import BuildFile, CompilerFlag, FileWord
from hpcgen.readers.folder import ProjectFolder, ProjectTree
from hpcgen.readers.makefile import read_makefile
from hpcgen.readers.mpi_sources import FORTRAN
from hpcgen.readers.old_code import CXX_SOURCE, headers_not_included, loses_flags, old_mpi_calls, used_headers

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
