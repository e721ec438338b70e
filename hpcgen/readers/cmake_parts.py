"""Files of CMake in commands and conditions, what they need, and which options are off that hide something."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.core.model.own_project import BuildOption, FileWord, WantedLibrary
from hpcgen.readers.cmake_text import CMakeCall, expanded

_TRUE, _FALSE = {"1", "ON", "YES", "TRUE", "Y"}, {"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"}
_OTHER_SYSTEMS = {"WIN32", "APPLE", "MSVC", "MINGW", "CYGWIN", "ANDROID", "IOS", "XCODE", "BORLAND"}
_COMPARED = {"STREQUAL", "MATCHES", "EQUAL", "LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "IN_LIST", "PATH_EQUAL"}
_ASKED = {"TARGET", "COMMAND", "POLICY", "TEST", "EXISTS", "IS_DIRECTORY", "IS_SYMLINK", "IS_ABSOLUTE", "DEFINED"}


class Condition:
    """What the words of ``if()`` come to: True, False, or None where that is not known.

    ``values``: the variables. ``holds``: whether the project has a path. ``doubted``: whether a variable may have
    another value, or one although nothing here sets it. ``targets``: what is built so far.
    """

    def __init__(
        self,
        words: list[str],
        values: dict[str, str],
        holds: Callable[[str], bool],
        doubted: Callable[[str], bool],
        targets: Collection[str],
    ) -> None:
        self._words, self._values, self._holds = words, values, holds
        self._doubted, self._targets = doubted, targets

    def result(self) -> bool | None:
        """Of the whole."""
        return self._any()

    def _next(self) -> str:
        return self._words[0] if self._words else ""

    def _any(self) -> bool | None:
        result = self._all()
        while self._next() == "OR":
            self._words.pop(0)
            other = self._all()
            result = True if result or other else None if None in (result, other) else False
        return result

    def _all(self) -> bool | None:
        result = self._one()
        while self._next() == "AND":
            self._words.pop(0)
            other = self._one()
            result = False if False in (result, other) else None if None in (result, other) else True
        return result

    def _one(self) -> bool | None:
        if not self._words:
            return None
        word = self._words.pop(0)
        if word == "NOT":
            inner = self._one()
            return None if inner is None else not inner
        if word == "(":
            inner = self._any()
            if self._next() == ")":
                self._words.pop(0)
            return inner
        if word in _ASKED and self._words:
            return self._asked(word, self._words.pop(0))
        if self._next() in _COMPARED or self._next().startswith("VERSION_"):
            how = self._words.pop(0)
            return self._compared(word, how, self._words.pop(0) if self._words else "")
        return self._truth(word)

    def _asked(self, how: str, word: str) -> bool | None:
        plain = expanded(word.strip('"'), self._values)
        if how == "TARGET" and (plain in self._targets or ("::" in plain and not self._doubted(plain))):
            return plain in self._targets
        if how == "DEFINED" and self._doubted(plain):
            return None
        if how == "DEFINED":
            return True if plain in self._values else None if plain.startswith("CMAKE_") else False
        if how in ("EXISTS", "IS_DIRECTORY") and "$" not in plain and not re.match(r"/(?!@)", plain):
            return self._holds(plain)
        return None

    def _compared(self, left: str, how: str, right: str) -> bool | None:
        first = self._values.get(left, expanded(left.strip('"'), self._values))
        second = self._values.get(right, expanded(right.strip('"'), self._values))
        if how != "STREQUAL" or "$" in first + second or (first == left and not left.startswith('"')):
            return None
        return first == second

    def _truth(self, word: str) -> bool | None:
        plain = expanded(word.strip('"'), self._values)
        if self._doubted(plain):
            return None
        if "$" in plain:
            # Of a variable that nothing sets CMake makes an empty text.
            return None if re.search(r"\$\{(CMAKE|PROJECT|\w*_FOUND)", plain) else False
        if plain.upper() in _TRUE or plain == "UNIX":
            return True
        if plain.upper() in _FALSE or plain.upper().endswith("-NOTFOUND") or plain in _OTHER_SYSTEMS:
            return False
        if plain in self._values:
            value = expanded(self._values[plain], self._values).upper()
            return None if "$" in value else value not in _FALSE and not value.endswith("-NOTFOUND")
        # What CMake and its modules set is not known here; of all else an unset variable is false.
        return None if re.match(r"(CMAKE|PROJECT|HAVE)_", plain) or plain.endswith(("FOUND", "_VERSION")) else False


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
    r"F08|IO|STATIC|FORTRAN|WARNING|LEGACY|DEPRECATED|EXPERIMENTAL|INPLACE)($|_)",
    re.I,
)


class Switched(NamedTuple):
    """A command that is not come by, and the names in the condition before it."""

    what: str
    names: list[str]
    call: CMakeCall


def off_by_default(
    switched: Sequence[Switched],
    off: Mapping[str, BuildOption],
    values: Mapping[str, str],
    over_mpi: bool,
    subjects: Sequence[str],
) -> dict[str, BuildOption]:
    """The options that MPI needs, and the threads of a program with ranks, by their names.

    ``off``: options that are off. ``values``: variables that are set. ``over_mpi``: MPI is looked for without any of
    them. ``subjects``: of MPI and OpenMP those that are wanted.
    """
    found: dict[str, BuildOption] = {}
    for subject in subjects:
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


_MPI_HEADERS = re.compile(r"\bMPI::|\bMPI_(\w+_)?INCLUDE")


class CMakeNeeds:
    """What was asked for so far, each with the command that does; ``sure``: that command is surely come by.

    ``mpi_headers``: a command says where MPI's headers are.
    """

    def __init__(self) -> None:
        self.mpi: FileWord | None = None
        self.mpi_headers = False
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.gpu_block = ""
        self.libraries: dict[str, WantedLibrary] = {}
        self.parallel_hdf5: FileWord | None = None
        self.pkg_config = False

    def see(self, call: CMakeCall) -> None:
        """Any command."""
        self.mpi_headers = self.mpi_headers or _MPI_HEADERS.search(call.text) is not None

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
        said = FileWord(f"find_package({' '.join(call.words)})", call.where)
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

    def looked_for_by(self, package: str, names: Collection[str], looks: bool) -> None:
        """What a module of the project's own looks for in the place of a package; of several any may do.

        ``looks``: it looks for files at all; another one tries the compiler.
        """
        own = self.libraries.get(package)
        if own is not None and not looks:
            del self.libraries[package]
        if own is not None and names:
            self.libraries[package] = replace(own, inside=sorted(names))
            for name in names:
                alone = own.required and len(names) == 1
                self.libraries[name] = replace(self.libraries[name], required=alone)

    def require(self, names: Iterable[str]) -> None:
        """The build fails without these, which it looks for before it gives up."""
        for name in list(names):
            self.libraries[name] = replace(self.libraries[name], required=True)


def joined(folder: str, path: str) -> str:
    """A path below a folder, of which either may be empty."""
    return f"{folder}/{path}".strip("/") if not folder.startswith("/") else f"{folder}/{path}".rstrip("/")


class CallPlace(NamedTuple):
    """Where a command stands: its file's folder, where that is built, and whether it is surely come by.

    ``unset``: a variable that has no value there, by the condition around it.
    """

    folder: str
    below: str
    sure: bool = True
    depth: int = 0
    unset: str = ""


class LeftFile(Exception):
    """``return()``, where it is surely come by."""
