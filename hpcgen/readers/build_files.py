"""Which file says how a project is compiled, and the reader of each build system."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.core.model.own_project import BuildFile, FileWord
from hpcgen.readers.autotools import NAMES as CONFIGURE
from hpcgen.readers.autotools import read_autotools
from hpcgen.readers.built_programs import set_aside
from hpcgen.readers.cargo import NAME as CARGO
from hpcgen.readers.cargo import read_cargo
from hpcgen.readers.cmake import read_cmake
from hpcgen.readers.cmake_reading import NAME as CMAKE
from hpcgen.readers.folder import ProjectFolder, ProjectTree
from hpcgen.readers.makefile import NAMES as MAKE
from hpcgen.readers.makefile import TEMPLATES, read_makefile
from hpcgen.readers.meson import NAME as MESON
from hpcgen.readers.meson import read_meson

Reader = Callable[[ProjectFolder, str], BuildFile]


class BuildSystem(NamedTuple):
    """Its files, of which the first that is there counts, or else a pattern of names; and their reader."""

    names: tuple[str, ...]
    reader: Reader
    pattern: str = ""


SYSTEMS = (
    BuildSystem((CMAKE,), read_cmake),
    BuildSystem((MESON,), read_meson),
    BuildSystem((CARGO,), read_cargo),
    BuildSystem(CONFIGURE, read_autotools),
    BuildSystem(MAKE, read_makefile, TEMPLATES),
)
"""In the order in which they are asked: what writes Makefiles comes before Makefiles."""
_USUAL = ("src", "source", "ref", "mpi", "openmp")
_OTHER_MODEL = re.compile(
    r"cuda|hip|opencl|sycl|kokkos|raja|acc|offload|target|cilk|qthreads|gpu|amg|mkl|serial|knl", re.I
)
"""Folders of a program in another programming model than that of every node."""
_MOST = 12


def read_build(tree: ProjectTree, read: Callable[[Reader, str], BuildFile | None]) -> BuildFile | None:
    """How the project is compiled: by a file of its own folder, else by one of a folder below.

    ``read``: reads a file with a reader; None where nothing of it can be read.
    """
    names: dict[str, list[str]] = {}
    for each in tree.files:
        folder, _, name = each.path.rpartition("/")
        names.setdefault(folder, []).append(name)
    there = [folder for folder in sorted(names) if folder.count("/") < 2 and _files(names[folder])]
    if "" in there:
        return _best([build for path, reader in _files(names[""]) if (build := read(reader, path)) is not None])
    below = sorted((folder for folder in there if not set_aside(folder)), key=_rank)[:_MOST]
    found: list[tuple[str, BuildFile]] = []
    for folder in below:
        if found and _rank(folder)[0] != _rank(found[0][0])[0]:
            break
        builds = [read(reader, f"{folder}/{path}") for path, reader in _files(names[folder])]
        best = _best([build for build in builds if build is not None])
        if best is not None and best.programs:
            found.append((folder, best))
            if not best.stops:
                break
    # The first that nothing keeps from being built, or else the first.
    chosen = next((each for each in found if not each[1].stops), next(iter(found), None))
    return chosen and _with_others(chosen[1], [each for each in below if each != chosen[0]])


def _files(names: list[str]) -> list[tuple[str, Reader]]:
    """Of one folder, one for each build system."""
    found = []
    for system in SYSTEMS:
        name = next((each for each in system.names if each in names), None)
        if name is None and system.pattern:
            name = next((each for each in sorted(names) if re.fullmatch(system.pattern, each)), None)
        if name is not None:
            found.append((name, system.reader))
    return found


def _best(builds: list[BuildFile]) -> BuildFile | None:
    """The first that makes a program, or else the first."""
    return next((each for each in builds if each.programs), builds[0] if builds else None)


def _rank(folder: str) -> tuple[bool, int, int, str]:
    parts = folder.lower().split("/")
    named = parts[:1] if parts[-1] in ("src", "source") and len(parts) > 1 else parts
    usual = next((number for number, word in enumerate(_USUAL) if any(word in part for part in named)), len(_USUAL))
    return (bool(_OTHER_MODEL.search(folder)), len(named), usual, folder)


def _with_others(build: BuildFile, others: list[str]) -> BuildFile:
    if not others or not build.programs:
        return build
    shown = ", ".join(others[:6]) + (" …" if len(others) > 6 else "")
    said = FileWord(
        f"{build.folder} is what is compiled; other folders with their own build: {shown}", build.programs[0].where
    )
    return replace(build, remarks=[*build.remarks, said])
