"""What a project in CMake needs: MPI, compilers, libraries."""

from __future__ import annotations

import re

from hpcgen.core.model.own_project import FileWord, WantedLibrary
from hpcgen.readers.cmake_options import GPU_LANGUAGES, GPU_PACKAGES
from hpcgen.readers.cmake_text import CMakeCall


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
