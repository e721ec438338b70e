"""The commands of CMakeLists.txt and of what it includes, in their order, by the values and conditions that are known.

Nothing is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

from hpcgen.core.model.own_project import BuildOption, FileWord
from hpcgen.readers.built_programs import set_aside
from hpcgen.readers.cmake_parts import CallPlace, CMakeNeeds, Condition, LeftFile, Switched, joined, subject_of
from hpcgen.readers.cmake_programs import CMakePrograms
from hpcgen.readers.cmake_results import prefix_of, results_of
from hpcgen.readers.cmake_text import LOOKS, CMakeCall, branches, calls, end_of, expanded, gives_up, items_of, tokens
from hpcgen.readers.folder import ProjectFolder

NAME = "CMakeLists.txt"
FOLDER = "build"
"""Where it is built, in the project's folder."""
_FILES, _STEPS, _DEEPEST, _NESTED, _WORDS = 80, 15_000, 12, 25, 150
_SOURCE, _BUILD = "/@source", "/@build"
_AT_BUILD = {"fetchcontent_makeavailable", "fetchcontent_populate", "externalproject_add", "cpmaddpackage"}
_SET_BEFORE = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_SYSTEM_NAME": "Linux",
    **{f"CMAKE_{language}_COMPILER_ID": "GNU" for language in ("C", "CXX", "Fortran")},
    **{f"{kind}_SOURCE_DIR": _SOURCE for kind in ("CMAKE", "PROJECT")},
    **{f"{kind}_BINARY_DIR": _BUILD for kind in ("CMAKE", "PROJECT")},
}


class CMakeReading:
    """One reading of a project, which ``read`` begins; ``on``: options that are switched on for it."""

    def __init__(self, folder: ProjectFolder, path: str, on: dict[str, BuildOption]) -> None:
        self.folder, self.path, self.on = folder, path, on
        self.top = path.rpartition("/")[0]
        self.project = ""
        self.needs = CMakeNeeds()
        self.minimum: FileWord | None = None
        self.fetches: list[FileWord] = []
        self.stops: list[FileWord] = []
        self.values: dict[str, str] = dict(_SET_BEFORE)
        self.off: dict[str, BuildOption] = {}
        self.switched: list[Switched] = []
        self.programs = CMakePrograms()
        self._doubtful: set[str] = set()
        self._targets: set[str] = set()
        self._modules: set[str] = set()
        self._prefixes: set[str] = set()
        self._functions: dict[str, tuple[list[str], list[CMakeCall]]] = {}
        self._read: set[str] = set()
        self._steps = self._nested = 0
        self._left = False

    def read(self) -> None:
        """The whole project."""
        self._file(self.path, CallPlace("", ""))

    # Files and blocks

    def _file(self, path: str, place: CallPlace) -> None:
        if path in self._read or len(self._read) >= _FILES or place.depth > _DEEPEST:
            return
        self._read.add(path)
        self._whole(list(calls(path, self.folder.text(path))), place)

    def _whole(self, body: Sequence[CMakeCall], place: CallPlace) -> None:
        """A file or a function: ``return()`` leaves that, and where it is not surely come by, nothing behind it is."""
        outer, self._left = self._left, False
        with suppress(LeftFile):
            self._run(body, place)
        self._left = outer

    def _run(self, body: Sequence[CMakeCall], place: CallPlace) -> None:
        number = 0
        while number < len(body):
            call = body[number]
            place = place._replace(sure=place.sure and not self._left)
            self._steps += 1
            if self._steps > _STEPS:
                return
            if call.name in ("if", "foreach", "while", "function", "macro"):
                end = end_of(body, number)
                self._nested += 1
                if self._nested < _NESTED:
                    self._block(body[number:end], place)
                self._nested -= 1
                number = end + 1
                continue
            self._call(call, place)
            number += 1

    def _block(self, body: Sequence[CMakeCall], place: CallPlace) -> None:
        head, inner = body[0], list(body[1:])
        if head.name == "if":
            self._if(body, place)
        elif head.name in ("function", "macro") and head.words:
            self._functions[head.words[0].lower()] = (head.words[1:], inner)
        elif head.name == "foreach" and head.words:
            words = items_of(head)
            for item in [part for word in words for part in re.split(r"[;\s]+", self._plain(word)) if part][:20]:
                self.values[head.words[0]] = item
                self._run(inner, place)

    def _if(self, body: Sequence[CMakeCall], place: CallPlace) -> None:
        done, sure = False, place.sure
        names: list[str] = []
        for head, inner in branches(body):
            words = tokens(head.text) if head.name != "else" else []
            if place.sure and len(words) == 2 and words[0] == "NOT" and words[1].endswith("_FOUND") and gives_up(inner):
                self.needs.require(name for name in self.needs.libraries if f"{name}_FOUND" == words[1])
            result = True if head.name == "else" else self._holds(words, place)
            if head.name != "else":
                names = [word for word in words if re.fullmatch(r"\w+", word)]
            if done or result is False:
                self._passed_by(inner, names)
                continue
            self._run(inner, place._replace(sure=sure and result is True, unset=self._unset(words)))
            done, sure = result is True, sure and result is not None

    def _unset(self, words: list[str]) -> str:
        """The variable that a condition asks for, where it has no value; empty for any other condition."""
        asks = words[:-1] in (["NOT"], ["NOT", "DEFINED"]) and re.fullmatch(r"\w+", words[-1])
        return words[-1] if asks and words[-1] not in self.values else ""

    def _holds(self, words: list[str], place: CallPlace) -> bool | None:
        def there(text: str) -> bool:
            path = self._source(text, place)
            return path is not None and self.folder.holds(path)

        here = {"CMAKE_CURRENT_SOURCE_DIR": joined(_SOURCE, place.folder)}
        return Condition(words[:_WORDS], {**self.values, **here}, there, self._doubted, self._targets).result()

    def _doubted(self, name: str) -> bool:
        """Whether a branch that may not be come by has set it, or a package that is found may have."""
        package = re.split(r"_|::", name)[0]
        if name in self._doubtful or package in self._modules:
            return True
        if name.startswith(tuple(self._prefixes)):
            return True
        if package == "MPI" and self.needs.mpi is not None:
            return name not in self.values
        return package in self.needs.libraries and not name.endswith("_FOUND")

    def _passed_by(self, body: Sequence[CMakeCall], names: list[str]) -> None:
        for call in body:
            what = subject_of(call)
            if what:
                self.switched.append(Switched(what, names, call))

    # Commands

    def _call(self, call: CMakeCall, place: CallPlace) -> None:
        # hip_add_executable, cuda_add_executable, blt_add_executable(NAME …) and their like come with what is found.
        name = "add_executable" if call.name.endswith("_add_executable") else call.name
        method = getattr(self, f"_do_{name}", None)
        words = [self._plain(word) for word in call.words]
        self.needs.see(call)
        self._doubtful |= {*results_of(call.name, words)}
        if prefix := prefix_of(call.name, words):
            self._prefixes.add(f"{prefix}_")
        if call.name in self._functions and place.depth < _DEEPEST:
            names, body = self._functions[call.name]
            self.values |= dict(zip(names, words, strict=False))
            self.values |= {"ARGN": ";".join(words[len(names) :]), "ARGV": ";".join(words), "ARGC": str(len(words))}
            self.values |= {f"ARGV{number}": word for number, word in enumerate(words)}
            before = {*self.needs.libraries}
            self._whole(body, place._replace(depth=place.depth + 1))
            if gives_up(body):
                self.needs.require({*self.needs.libraries} - before)
        elif call.name in _AT_BUILD:
            self._fetched(f"{call.name}({words[0] if words else ''})", call, place)
        elif method is not None and words:
            method(words, call, place)
        elif call.name == "return" and not place.sure:
            self._left = True
        elif call.name == "return":
            if not place.depth:
                self.stops.append(FileWord("CMake ends here, unless a variable before it is set", call.where))
            raise LeftFile

    def _do_project(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.project = self.project or words[0]
        folder = joined(_SOURCE, place.folder)
        self.values |= {"PROJECT_NAME": words[0], "PROJECT_SOURCE_DIR": folder, f"{words[0]}_SOURCE_DIR": folder}
        self.values.setdefault("CMAKE_PROJECT_NAME", words[0])
        self.needs.languages(words[1:], call, place.sure)

    def _do_enable_language(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.needs.languages(words, call, place.sure)

    def _do_cmake_minimum_required(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if len(words) > 1:
            self.minimum = self.minimum or FileWord(words[1].partition("...")[0], call.where)

    def _do_option(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        value = words[2] if len(words) > 2 and words[2] else "OFF"
        if words[0] in self.values:
            return
        if words[0] not in self.on and value.upper() in ("OFF", "0", "NO", "FALSE", "N"):
            self.off[words[0]] = BuildOption(f"-D{words[0]}=ON", words[1] if len(words) > 1 else "", call.where)
        self.values[words[0]] = "ON" if words[0] in self.on else value

    _do_cmake_dependent_option = _do_option

    def _do_set(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        name, rest = words[0], words[1:]
        if "CACHE" in rest:
            cached = rest.index("CACHE")
            if rest[cached + 1 : cached + 2] == ["BOOL"]:
                return self._do_option([name, *rest[cached + 2 : cached + 3], *rest[:1]], call, place)
            if name in self.values:
                return None
            rest = rest[:cached]
        open_ = {*re.findall(r"\$\{(\w+)\}", " ".join(call.words[1:]))} & self._doubtful
        off = rest[:1] in (["FALSE"], ["OFF"], ["0"], []) and not open_
        if name == "HDF5_PREFER_PARALLEL" and not off and place.sure:
            self.needs.parallel_hdf5 = FileWord(f"set({' '.join(call.words)})", call.where)
        if not place.sure and name in self.values:
            self._doubtful.add(name)
        else:
            self.values[name] = ";".join(word for word in rest if word != "PARENT_SCOPE")
        return None

    def _do_unset(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.values.pop(words[0], None)

    def _do_list(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if words[0] in ("APPEND", "PREPEND") and len(words) > 2:
            self.values[words[1]] = ";".join(filter(None, [self.values.get(words[1], ""), *words[2:]]))[:4000]
        elif words[0] == "GET" and len(words) == 4 and words[1] not in self.values:
            self._doubtful.add(words[3])
        elif words[0] == "GET" and len(words) == 4:
            items = self.values[words[1]].split(";")
            number = int(words[2]) if re.fullmatch(r"-?\d{1,4}", words[2]) else len(items)
            self.values[words[3]] = items[number] if -len(items) <= number < len(items) else ""

    def _do_string(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if words[0] in ("TOLOWER", "TOUPPER") and len(words) == 3:
            self.values[words[2]] = words[1].lower() if words[0] == "TOLOWER" else words[1].upper()

    def _do_include(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if path := self._included(words[0], place):
            return self._file(path, place._replace(depth=place.depth + 1))
        # What a module of CMake's own sets begins with its name.
        self._modules.add(words[0])
        if words[0].startswith(_SOURCE) and place.sure and "OPTIONAL" not in words and "$" not in words[0]:
            missing = self._source(words[0], place)
            self.stops.append(FileWord(f"CMake includes {missing}, which is not here", call.where))
        return None

    def _included(self, name: str, place: CallPlace) -> str:
        """The file that a path or a module's name means; empty where the project has none."""
        folders = [part for part in self.values.get("CMAKE_MODULE_PATH", "").split(";") if part]
        for text in (name, *(f"{self._plain(part)}/{name}.cmake" for part in folders)):
            path = self._source(text, place)
            if path is not None and path.endswith((".cmake", ".txt")) and self.folder.holds(path):
                return path
        return ""

    def _do_add_subdirectory(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if "$" in words[0]:
            return
        inner = self._source(words[0], place)
        if inner is not None and (self.folder.top / inner / NAME).is_file():
            local = {name: value for name, value in self.values.items() if name.startswith("PROJECT_")}
            folder = inner[len(self.top) :].strip("/") if self.top else inner
            sure = place.sure and not set_aside(folder)
            folder = "" if folder == "." else folder
            named = words[1:2] and words[1][:1] not in ("$", "E", "")
            below = words[1].removeprefix(_BUILD).strip("/") if named else folder
            inner = os.path.normpath(f"{inner}/{NAME}")
            self._file(inner, CallPlace(folder, below, sure, place.depth + 1))
            self.values |= local

    def _do_subdirs(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        for word in words:
            self._do_add_subdirectory([word], call, place)

    def _do_add_library(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self._targets.add(words[0])

    def _do_add_executable(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        names = ("CMAKE_RUNTIME_OUTPUT_DIRECTORY", "EXECUTABLE_OUTPUT_PATH")
        output = next((value for name in names if (value := self.values.get(name))), "")
        self.programs.add(words, call.where, place.folder, place.sure, self._output(output, place))

    def _output(self, text: str, place: CallPlace) -> str:
        """A folder of programs from the project's own; by default that where the file is built."""
        plain = self._plain(text, place)
        build = joined(self.top, FOLDER)
        if plain.startswith(_SOURCE) and "$" not in plain:
            return joined(self.top, plain[len(_SOURCE) :].strip("/")) or "."
        below = plain[len(_BUILD) :] if plain.startswith(_BUILD) else plain if plain and plain[0] != "/" else None
        return joined(build, place.below if below is None or "$" in below else below.strip("/"))

    def _do_set_target_properties(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.programs.describe(words, lambda text: self._output(text, place))

    def _do_target_link_libraries(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.programs.link(words)

    def _do_install(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.programs.install(words, call.where)

    def _do_find_package(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        found = self.needs.find_package(words, call, place.sure)
        if module := self._included(f"Find{words[0]}", place):
            before, stops = {*self.needs.libraries}, len(self.stops)
            self._file(module, place._replace(depth=place.depth + 1))
            # Whether it finds something is for the machine to say.
            del self.stops[stops:]
            looks = LOOKS.search(self.folder.text(module)) is not None
            self.needs.looked_for_by(words[0], {*self.needs.libraries} - before, looks)
        if found:
            self.values.setdefault(f"{words[0]}_FOUND", "TRUE")
            if words[0] == "MPI":
                for language in ("C", "CXX", "Fortran"):
                    self.values.setdefault(f"MPI_{language}_FOUND", "TRUE")
                    self.values.setdefault(f"MPI_{language}_COMPILER", "mpicc")
                for name in ("F77_HEADER", "F90_MODULE"):
                    self.values.setdefault(f"MPI_Fortran_HAVE_{name}", "TRUE")

    def _do_pkg_check_modules(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        self.needs.modules(words, call, place.sure)

    _do_pkg_search_module = _do_pkg_check_modules

    def _do_file(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if words[0] == "DOWNLOAD":
            self._fetched("file(DOWNLOAD)", call, place)

    def _do_execute_process(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if re.search(r"\bsubmodule update\b|\bgit clone\b|\bwget\b|\bcurl\b", " ".join(words)):
            self._fetched("execute_process(…)", call, place)

    def _fetched(self, what: str, call: CMakeCall, place: CallPlace) -> None:
        if place.sure and not set_aside(place.folder):
            self.fetches.append(FileWord(what, call.where))

    def _do_message(self, words: list[str], call: CMakeCall, place: CallPlace) -> None:
        if words[0] in ("FATAL_ERROR", "SEND_ERROR") and place.sure and place.depth < 3:
            text = " ".join(" ".join(words[1:]).split())[:120]
            said = f"; -D{place.unset}=… behind `cmake -B {FOLDER}` in the stack gives a value" if place.unset else ""
            self.stops.append(FileWord(f"CMake stops here as the project is now: {text!a}{said}", call.where))

    # Values

    def _plain(self, text: str, place: CallPlace | None = None) -> str:
        values = self.values
        if place is not None:
            values = {**values, "CMAKE_CURRENT_BINARY_DIR": joined(_BUILD, place.below)}
        return expanded(text, values)

    def _source(self, text: str, place: CallPlace) -> str | None:
        """A path of the project's folder; None for one outside it or with a variable that is not known."""
        here = joined(_SOURCE, place.folder)
        values = {**self.values, "CMAKE_CURRENT_SOURCE_DIR": here, "CMAKE_CURRENT_LIST_DIR": here}
        plain = expanded(text.strip('"'), values)
        if "$" in plain or (plain.startswith("/") and not plain.startswith(_SOURCE)):
            return None
        below = plain[len(_SOURCE) :].strip("/") if plain.startswith(_SOURCE) else joined(place.folder, plain)
        return os.path.normpath(joined(self.top, below) or ".")
