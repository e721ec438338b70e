"""How what has to be compiled is compiled: CMakeLists.txt and Makefiles."""

from __future__ import annotations

import re

from hpcgen.core.model.own_project import BuildFile
from hpcgen.core.support.quoting import command
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.places import APP

_FOLDER = "build"
_OLD_CMAKE = (3, 16)
"""The oldest that a base of hpcgen has; what asks for no newer one needs no range."""


def choose_build(found: Found, draft: Draft) -> None:
    """The ``build`` of the stack, the MPI that it asks for, and where its programs are then."""
    build = found.build
    if build is None:
        return
    if build.mpi is None and not build.programs:
        draft.remark(
            f"{build.file} exists, but init finds no program in it; `build:` in the stack says how it is compiled"
        )
        return
    if build.mpi is not None:
        draft.add_block("mpi", f"{build.mpi.text} asks for MPI; the site decides which one", build.mpi.where)
    if build.fortran is not None:
        why = f"{build.fortran.text}: the Fortran compiler is only installed on request"
        draft.add_block("gnu", why, build.fortran.where, fortran=True)
        if build.mpi is not None:
            text = "for MPI in Fortran add --set mpich.fortran=true or --set openmpi.fortran=true, by the site's MPI"
            draft.remark(text, build.fortran.where)
    commands = _cmake(build, draft) if build.kind == "cmake" else [_make(build)]
    first = build.programs[0] if build.programs else build.mpi
    where = first.where if first is not None else None
    said = f"{build.file} makes {build.programs[0].path}" if build.programs else f"{build.file} compiles it"
    draft.put(("build", "commands"), commands, f"{said}; compiled for the CPUs of the partition", where)
    if build.mpi is not None:
        draft.put(("build", "mpi"), True, "the program is linked with the image's MPI", build.mpi.where)
    for program in build.programs:
        below = f"{_FOLDER}/{program.path}" if build.kind == "cmake" else program.path
        draft.programs[program.path.rpartition("/")[2]] = f"{APP}/{below}"


def _cmake(build: BuildFile, draft: Draft) -> list[str]:
    minimum = build.minimum
    if minimum is not None and re.fullmatch(r"\d+\.\d+(\.\d+)*", minimum.text):
        parts = tuple(int(each) for each in minimum.text.split(".")[:2])
        if parts > _OLD_CMAKE:
            draft.put(("blocks", "cmake"), {"version": f">={minimum.text}"}, "cmake_minimum_required", minimum.where)
    return [f"cmake -B {_FOLDER} -DCMAKE_BUILD_TYPE=Release", f'cmake --build {_FOLDER} -j "$(nproc)"']


def _make(build: BuildFile) -> str:
    words = [command(f"{name}={said.text}") for name, said in build.weak.items()]
    file = [] if build.file in ("Makefile", "makefile", "GNUmakefile") else [command("-f", build.file)]
    return " ".join(["make", *file, '-j "$(nproc)"', *words])
