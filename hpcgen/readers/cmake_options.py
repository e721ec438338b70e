"""The options of a project in CMake that are off by default, and what is hidden behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpcgen.core.model.own_project import BuildOption
from hpcgen.readers.cmake_text import CMakeCall

GPU_LANGUAGES = {"CUDA": "cuda", "HIP": "rocm"}
GPU_PACKAGES = {"CUDA": "cuda", "CUDAToolkit": "cuda", "hip": "rocm", "HIP": "rocm"}
"""The block that has the compiler of a language, and that of what a package belongs to."""
_SAYS = {
    "MPI": re.compile(r"(?<![A-Z])MPI(?![A-Z])|(^|_)(PARALLEL|DISTRIBUTED)($|_)", re.I),
    "OpenMP": re.compile(r"OPENMP|(^|_)OMP($|_)", re.I),
    "GPUs": re.compile(r"CUDA|(^|_)HIP($|_)|ROCM|GPU", re.I),
}
_OTHER_OPTION = re.compile(
    r"(^|_)(NO|NOT|DISABLE|WITHOUT|SKIP|TESTS?|TESTING|EXAMPLES?|BENCH\w*|DOCS?|DEBUG|PROFIL\w*|AWARE|OFFLOAD|TARGET|"
    r"F08|IO|STATIC|FORTRAN|WARNING)($|_)",
    re.I,
)


class Switched(NamedTuple):
    """A command that is not come by, and the names in the condition before it."""

    what: str
    names: list[str]
    call: CMakeCall


def off_by_default(
    switched: Sequence[Switched], off: Mapping[str, BuildOption], values: Mapping[str, str], over_mpi: bool
) -> dict[str, BuildOption]:
    """The options that MPI needs, and the threads of a program with ranks, by their names.

    Parameters
    ----------
    off: options that are off. values: variables that are set. over_mpi: MPI is looked for without any of them.
    """
    found: dict[str, BuildOption] = {}
    for subject in ("MPI", "OpenMP"):
        behind = {name: each for each in switched if each.what == subject for name in each.names}
        for name, option in off.items():
            if _OTHER_OPTION.search(name):
                continue
            says = _SAYS[subject].search(name)
            text = says or _SAYS[subject].search(option.said)
            if (text and name in behind) or (says and subject == "MPI" and "MPI" in name.upper()):
                found[name] = option
        for name, each in behind.items():
            # A variable that nothing sets is an option that nobody has written down.
            unset = name not in off and name not in values and not name.endswith("_FOUND")
            if unset and _SAYS[subject].search(name) and not _OTHER_OPTION.search(name):
                found[name] = BuildOption(f"-D{name}=ON", f"{subject} is behind if({name})", each.call.where)
        if subject == "MPI" and not over_mpi and not found:
            break
    return found


def gpu_option(switched: Sequence[Switched], off: Mapping[str, BuildOption]) -> BuildOption | None:
    """One that is off and has code for GPUs behind it."""
    names = [name for each in switched if each.what == "GPUs" for name in each.names]
    return next((off[name] for name in names if name in off and _SAYS["GPUs"].search(name)), None)


def subject_of(call: CMakeCall) -> str:
    """What of MPI, OpenMP and GPUs a command asks for."""
    if call.name == "find_package" and call.words:
        first = call.words[0]
        return first if first in ("MPI", "OpenMP") else "GPUs" if first in GPU_PACKAGES else ""
    return "GPUs" if call.name == "enable_language" and GPU_LANGUAGES.keys() & {*call.words} else ""
