"""What a project in CMake needs, and its options that are off by default, with what is hidden behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpcgen.core.model.own_project import BuildOption, FileWord, WantedLibrary
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


class CMakeNeeds:
    """What was asked for so far, each with the command that does; ``sure``: that command is surely come by."""

    def __init__(self) -> None:
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.gpu_block = ""
        self.libraries: dict[str, WantedLibrary] = {}
        self.parallel_hdf5: FileWord | None = None
        self.pkg_config = False

    def languages(self, words: list[str], call: CMakeCall, sure: bool) -> None:
        """Those of project() and enable_language()."""
        said = FileWord(f"{call.name}({' '.join(call.words)})", call.where)
        if "Fortran" in words:
            self.fortran = self.fortran or said
        for language, block in GPU_LANGUAGES.items():
            if language in words:
                self._for_gpus(said, block, sure)

    def _for_gpus(self, said: FileWord, block: str, sure: bool) -> None:
        self.gpus = self.gpus or said
        self.gpu_block = self.gpu_block or (block if sure else "")

    def find_package(self, words: list[str], call: CMakeCall, sure: bool) -> bool:
        """A package; whether the build has it where it goes on."""
        said = FileWord(f"find_package({' '.join(words)})", call.where)
        required = "REQUIRED" in words and sure
        if words[0] == "MPI":
            self.mpi = self.mpi or said
            if "Fortran" in words:
                self.fortran = self.fortran or said
            return True
        if words[0] in GPU_PACKAGES:
            self._for_gpus(said, GPU_PACKAGES[words[0]], required)
        elif re.fullmatch(r"[\w+.-]+", words[0]):
            start = next((words.index(word) for word in ("COMPONENTS", "REQUIRED") if word in words), len(words))
            parts = [part for word in words[start + 1 :] for part in word.split(";")]
            self._wanted(WantedLibrary(words[0], said.text, call.where, required, parts))
        return required

    def modules(self, words: list[str], call: CMakeCall, sure: bool) -> None:
        """Modules of pkg-config."""
        self.pkg_config |= "REQUIRED" in words and sure
        for word in words[1:]:
            name = re.split(r"[<>=]", word)[0]
            if re.fullmatch(r"[\w+.-]+", name) and name not in ("REQUIRED", "QUIET", "IMPORTED_TARGET", "GLOBAL"):
                said = f"{call.name}({' '.join(words)})"
                self._wanted(WantedLibrary(name, said, call.where, "REQUIRED" in words and sure))

    def _wanted(self, library: WantedLibrary) -> None:
        known = self.libraries.get(library.name)
        if known is None or (library.required and not known.required):
            self.libraries[library.name] = library
