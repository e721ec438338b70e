"""Projects with a Spack environment: its block, with what the image must have for these packages."""

from __future__ import annotations

import re

from hpcgen.catalog.project import SPACK
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.spack import SpackFile
from hpcgen.core.support.units import counted, some
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.readers.built_programs import set_aside

_NAME, _LOCK = "spack.yaml", "spack.lock"
_DEEPEST = 2
_HAS_LINEAR_ALGEBRA = ("openblas", "netlib-lapack", "amdlibflame", "intel-oneapi-mkl", "nvpl-lapack")
_LINEAR_ALGEBRA = ("blas", "cblas", "lapack", "lapacke")
_NODE = re.compile(r"(?:^|\^)\s*(?:\[[^]]*\]\s*)?([a-z0-9][a-z0-9_-]*)")


def choose_spack(found: Found, draft: Draft) -> None:
    """The block for the packages of the project's spack.yaml; a remark where that cannot be taken as it is."""
    from hpcgen.readers.spack_env import read_environment

    paths = [each.path for each in found.tree.files if each.path.rpartition("/")[2] == _NAME]
    paths = [each for each in paths if each.count("/") <= _DEEPEST and not set_aside(each.rpartition("/")[0])]
    paths.sort(key=lambda each: each.count("/"))
    if not paths:
        return
    if len(paths) > 1 and "/" in paths[0]:
        text = f"several Spack environments, and none of them taken: {some(paths)}"
        draft.remark(f"{text}; `spack_packages: {{options: {{files: [{paths[0]}]}}}}` takes the first")
        return
    quiet = found._replace(problems=Problems())
    file = quiet.read(read_environment, paths[0])
    if file is None or quiet.problems:
        _skip(paths[0], quiet.problems, draft)
        return
    _put(file, draft)
    if found.tree.has(lock := f"{paths[0].removesuffix(_NAME)}{_LOCK}"):
        draft.remark("its versions are for another machine, and not taken: `hpcgen lock` chooses", Position(lock, 1, 1))


def _skip(path: str, problems: Problems, draft: Draft) -> None:
    """Say of each mistake of the file, by its place, why it is not taken."""
    for number, problem in enumerate(problems):
        place = problem.where if isinstance(problem.where, Position) else None
        where = Position(path, place.line if place is not None else 1, 1)
        lead = f"{path} was skipped: " if number == 0 else ""
        draft.remark(f"{lead}{problem.message}; {problem.remedy or problem.expected}", where)


def _put(file: SpackFile, draft: Draft) -> None:
    """The block, and of others what these packages need of them."""
    said = [*file.specs, *file.words]
    draft.spack = frozenset(name for each in file.specs for name in _NODE.findall(each.spec))
    first = file.specs[0].where
    why = f"{counted(len(file.specs), 'spec')} of {file.file}, compiled over what the image has; `hpcgen lock` chooses"
    draft.add_block(SPACK, why, first, files=[file.file])
    options = draft.blocks[SPACK]["options"]
    with_mpi = next((each for each in said if re.search(r"\+\s*mpi\b|\^mpi\b|-mpi\b", each.spec)), None)
    without = next((each for each in said if re.search(r"~\s*mpi\b", each.spec)), None)
    if file.mpi:
        draft.add_block("mpi", f"{file.file} names {file.mpi}; the site decides which MPI the image has", first)
    elif with_mpi is not None:
        draft.add_block("mpi", f"{with_mpi.spec} needs an MPI; the site decides which one", with_mpi.where)
    elif without is not None:
        options["mpi"] = False
        draft.because(("blocks", SPACK), None, f"{without.spec}: packages without MPI", without.where)
    if (gpus := next((each for each in said if re.search(r"\+\s*cuda\b", each.spec)), None)) is not None:
        options["cuda"] = True
        draft.because(("blocks", SPACK), None, f"{gpus.spec}: over the image's CUDA, for the site's GPU", gpus.where)
        draft.gpu_package = draft.gpu_package or gpus.spec
    fortran = next((each for each in said if re.search(r"\+\s*fortran\b|-fortran\b", each.spec)), None)
    why = "many packages of Spack, such as openblas, need a Fortran compiler"
    draft.put(("blocks", "gnu"), {"options": {"fortran": True}}, why)
    if fortran is not None and "mpi" in draft.blocks:
        why = f"{fortran.spec}: MPI's Fortran bindings are only there on request"
        draft.put(("blocks", "mpi"), {"options": {"fortran": True}}, why, fortran.where)
    for note in file.notes:
        draft.remark(note.text, note.where)
    if of_python := sorted(name for name in draft.spack if name.startswith("py-")):
        text = f"{some(of_python)} of {file.file} are for Spack's own Python, not for that of `python_packages`"
        draft.remark(text, first)


def brought(names: str, draft: Draft) -> bool:
    """Whether the environment asks for a library that a build knows by one of these names."""
    there = {*draft.spack, *(_LINEAR_ALGEBRA if draft.spack & {*_HAS_LINEAR_ALGEBRA} else ())}
    return not {_plain(each) for each in names.split()}.isdisjoint(map(_plain, there))


def _plain(name: str) -> str:
    """A name without what tells Spack's from others: ``netcdf-c`` and ``NetCDF``, ``eigen`` and ``Eigen3``."""
    return re.sub(r"^lib|-(c|cxx|cxx4|fortran)$|[-_]|\d+$", "", name.lower())
