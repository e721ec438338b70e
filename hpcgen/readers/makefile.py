"""Makefiles of a project: the program of the first target, its compilers, its libraries and what turns MPI on.

Variables and plain conditions are followed; no function of make is worked out and nothing is run.
Form: https://www.gnu.org/software/make/manual/make.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, CompilerFlag, FileWord, WantedLibrary
from hpcgen.core.support.quoting import command
from hpcgen.readers.built_programs import Built, in_order, is_program, program_files
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.make_variables import MPI_WRAPPER, Assignments, active

USUAL_TARGETS = ("openmpi", "mpich", "mpi", "gnu", "gcc", "linux", "all")
"""Those that every image can make, the likeliest to be over MPI first."""
SAYS = re.compile(r"\t[ \t]*[@-]*[ \t]*(echo|printf|cat|true|:)(\s|$)")
"""A line of a recipe that only says something."""
_COPIED = re.compile(r"\bcp\s+(?:-\w+\s+)*([\w./+-]*[Mm]akefile[\w./+-]*)\s+[\w./+-]+\s*$")
_MADE = re.compile(r"\bcd\s+([\w./+-]+)\s*(?:;|&&).*\$[({]?MAKE[)}]?\s.*[\s\"](\.\./[\w./+-]+)\s*$")


def made_elsewhere(line: str) -> tuple[str, str]:
    """The Makefile that a line of a recipe copies, and the program that it has make in another folder make; or empty.

    ``line``: with its variables put in.
    """
    copied, made = _COPIED.search(line), _MADE.search(line)
    return copied[1] if copied else "", os.path.normpath(f"{made[1]}/{made[2]}") if made else ""


NAMES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which GNU make takes them: https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html."""
TEMPLATES = r"(?:GNUm|M|m)akefile[._](?:vanilla|example|sample|template|default|dist|gnu|gcc|linux|mpi|in\.example)"
"""Makefiles that a user copies first."""
_FORTRAN = re.compile(r"(?<![\w/.-])(gfortran|mpifort|mpif77|mpif90|mpif08|mpiifort|mpiifx|ftn|\$[({]FC[)}])(?![\w-])")
_GPUS = re.compile(r"(?<![\w.-])(nvcc|hipcc)(?![\w-])")
_ASSIGNED = re.compile(r"^[ \t]*(?:export[ ]+|override[ ]+)?([\w.]+)[ \t]*(\?=|::?=|\+=|=)[ \t]*(.*?)[ \t]*$")
_COMMENTED = re.compile(r"^[ \t]*#+[ \t]*([A-Z]\w*)[ \t]*[?:]?=[ \t]*(\S.*?)[ \t]*$")
_RULE = re.compile(r"^([^\s#:=][^:=]*)::?(?!=)[ \t]*([^#=]*)")
_OUTPUT = re.compile(r"(?<=\s)-o(?:[ \t]+|(?=\$))(\$@|[\w./$(){}-]+)")
_COMMAND = re.compile(r"^\t[ \t]*[@+-]*[ \t]*\$[({](\w+)[)}]")
_ASKED = re.compile(r"^[ \t]*(?:else[ \t]+)?ifn?eq\b.*?\$[({](\w+)", re.M)
_LIBRARY = re.compile(r"(?<!\S)-l([\w+.-]+)")
_MAKES = r"(?:\$[({]?MAKE[)}]?|(?<![\w./-])g?make(?=[\s;)]|$))"
_DELEGATED = re.compile(rf"(?:cd[ \t]+([\w./-]+)[ \t]*(?:;|&&)[ \t]*)?{_MAKES}(?:[^;&|]*?-C[ \t]*([\w./-]+))?")
_LOOP = re.compile(
    rf"\bfor[ \t]+(\w+)[ \t]+in[ \t]+([^;]+);.*?"
    rf"(?:cd[ \t]+\$\$\{{?\1\}}?.*?{_MAKES}|{_MAKES}[^;&|]*-C[ \t]*\$\$\{{?\1\}}?)"
)
"""The shell's loop over folders in each of which make is called."""
_NATIVE = re.compile(r"-(?:march|mcpu|mtune)=native")
_SYSTEM = {"m", "pthread", "dl", "rt", "stdc++", "gfortran", "gomp", "c", "util", "quadmath", "ineinfo"}
"""Libraries that every base has, and what nvcc's -lineinfo would be the library of."""
_FILES, _LONGEST = 20, 4000
_CONFIGURATIONS = ("arch", "config", "configs", "examples", "make", "platforms", "setup", "templates")
"""Folders where configurations of several machines lie."""


def read_makefile(
    folder: ProjectFolder, path: str, by_sources: FileWord | None = None, flags: Sequence[CompilerFlag] = ()
) -> BuildFile:
    """What the file and those it includes say; InputError where it cannot be read.

    ``by_sources``: the line of a source that requires MPI, where the file itself does not say so. ``flags``: options
    that compilers need, for the variables that name these.
    """
    reading = _Makefile(folder, path)
    reading.read(path)
    reading.come_to_includes()
    reading.choose_target()
    reading.see_gpus()
    reading.ask_readme()
    reading.mpi = reading.mpi or by_sources
    weak = reading.with_flags(reading.on_the_command_line(by_sources is not None), flags)
    mpi = reading.mpi or next((each for each in reading.switches.values()), None)
    return BuildFile(
        path,
        "make",
        reading.folder,
        mpi,
        reading.fortran,
        reading.gpus,
        reading.gpu_block,
        programs=program_files(reading.programs()),
        libraries=[each for name, each in reading.libraries.items() if not reading.makes(name)],
        installs=reading.rules["install"][0] if "install" in reading.rules else None,
        weak=weak,
        before=reading.before,
        stops=reading.stops,
        remarks=reading.remarks,
        target=reading.target,
    )


class _Makefile(Assignments):
    def __init__(self, folder: ProjectFolder, path: str) -> None:
        super().__init__()
        self.files = folder
        self.folder = path.rpartition("/")[0]
        self.gpus: FileWord | None = None
        self.rules: dict[str, tuple[Position, list[str]]] = {}
        self.libraries: dict[str, WantedLibrary] = {}
        self.before: list[FileWord] = []
        self.missing: dict[str, FileWord] = {}
        self.targets: set[str] = set()
        self.target = ""
        self.recipes: dict[str, list[tuple[Position, str]]] = {}
        self.remarks: list[FileWord] = []
        self._target = ""
        self._targets: list[str] = []
        self._linked: dict[str, Position] = {}
        self._implied: dict[str, Position] = {}
        self._built: list[Built] = []
        self._read: set[str] = set()
        self._copied: dict[str, str] = {}

    def read(self, path: str) -> None:
        """One file, with those that it includes."""
        if path in self._read or len(self._read) >= _FILES:
            return
        self._read.add(path)
        name = path.rpartition("/")[2]
        if not self._read - {path} and name not in NAMES:
            at = Position(path, 1, 1)
            if re.fullmatch(TEMPLATES, name):
                self.before.append(FileWord(f"cp {name} Makefile", at))
        self.asked |= {*_ASKED.findall(self.files.text(path))}
        for where, line, sure in active(path, self.files.text(path), self):
            self._line(where, line, sure)

    # Lines

    def _line(self, where: Position, line: str, sure: bool) -> None:
        text = line.partition("#")[0].rstrip()
        if match := _COMMENTED.match(line):
            place = Position(where.file, where.line, match.start(2) + 1)
            self.commented.setdefault(match[1], []).append(FileWord(match[2], place))
        self.mpi = self.mpi or _said(MPI_WRAPPER, text, where)
        self.fortran = self.fortran or _said(_FORTRAN, text, where)
        self.gpus = self.gpus or _said(_GPUS, text, where)
        # Behind a folder of the project's own it is what the project makes there.
        strange = "-L" not in text or not re.search(r"(?<!\S)-L[ \t]*[\w.]", self.value(text))
        for name in _LIBRARY.findall(text):
            if name not in _SYSTEM and not name.startswith("mpi"):
                self.libraries.setdefault(name, WantedLibrary(name, f"-l{name}", where, sure and strange))
        if (match := _NATIVE.search(text)) and sure and not any(_NATIVE.match(each.text) for each in self.remarks):
            said = f"{match[0]} compiles for the CPU of the machine that builds: build on a node like those of the job"
            self.remarks.append(FileWord(said, where))
        if line.startswith("\t"):
            self._recipe(where, text)
        elif match := _ASSIGNED.match(text):
            self._assigned(match[1], match[2], match[3], Position(where.file, where.line, match.start(3) + 1))
            self.open |= {match[1]} if match[2] == "+=" or not sure else set()
        elif match := re.match(r"[ ]*(-?s?include)[ \t]+(.+)", text):
            for each in self.value(match[2]).split():
                self._include(each, match[1], where)
        elif match := _RULE.match(text):
            at = Position(where.file, where.line, 1)
            self._targets = [self.value(each) for each in self.value(match[1]).split()]
            needed = self.value(match[2]).split()
            for target in self._targets:
                self._target = target
                self.rules.setdefault(target, (at, needed))
                self.targets.add(target.rpartition("/")[2])
                # The rule that make has itself links a program from its own object file.
                if "%" not in target and f"{target}.o" in needed:
                    self._implied.setdefault(target, at)

    def _recipe(self, where: Position, text: str) -> None:
        self.commands |= {*_COMMAND.findall(text)}
        self.recipes.setdefault(self._target, []).append((where, text))
        if match := _LOOP.search(text[:_LONGEST]) if not re.match(r"\w*clean", self._target) else None:
            for folder in self.value(match[2]).split():
                self._delegate(self._path(folder), where)
        elif (match := _DELEGATED.search(text)) and (match[1] or match[2]):
            folder = self._path(match[1] or match[2])
            self._delegate(folder, where)
        if (match := _OUTPUT.search(text)) and not re.search(r"(?<=\s)-c(?=\s|$)|\bar\b", text):
            name = self._target if match[1] == "$@" else self.value(match[1])
            self._linked.setdefault(name, Position(where.file, where.line, match.start(1) + 1))

    def _assigned(self, name: str, how: str, value: str, where: Position) -> None:
        if how == "+=":
            self.values[name] = f"{self.values.get(name, '')} {value}".strip()[:4000]
            return
        if how == "?=" and name in self.values:
            return
        self.values[name] = value
        self.set_at[name] = (how, FileWord(value, where))

    def _include(self, name: str, how: str, where: Position) -> None:
        path = self._path(name)
        if "$" in name or path.startswith(("..", "/")):
            return
        if self.files.holds(path):
            return self.read(path) if (self.files.top / path).is_file() else None
        if path in self._copied:
            return self.read(self._copied[path])
        found = self._examples(path)
        if found:
            # A configuration that everybody writes for his machine comes as an example.
            self._copied[path] = found[0]
            place = os.path.relpath(found[0], self.folder or ".")
            self.before.append(FileWord(command("cp", place, name), where))
            if len(found) > 1:
                others = ", ".join(found[1:6])
                self.remarks.append(FileWord(f"{found[0]} is taken for {name}; others: {others}", where))
            self.read(found[0])
        elif how == "include":
            self.missing[path] = FileWord(name, where)
        return None

    def come_to_includes(self) -> None:
        """Files that are included and not here: what a rule makes them from is read, and the others are said.

        Source: https://www.gnu.org/software/make/manual/html_node/Remaking-Makefiles.html
        """
        for path, named in self.missing.items():
            for target, (_, needed) in list(self.rules.items()):
                before, percent, after = self._path(target).partition("%")
                stem = path[len(before) : len(path) - len(after)]
                if path == f"{before}{stem}{after}" and bool(stem) == bool(percent):
                    sources = [self._path(each.replace("%", stem)) for each in needed]
                    if all((self.files.top / each).is_file() for each in sources):
                        for source in sources:
                            self.read(source)
                        break
            else:
                self.stops.append(FileWord(f"{named.text} is included and not here: it has to be written", named.where))

    def choose_target(self) -> None:
        """That for Open MPI or GNU's compilers, where the first target only says which there are."""
        first = self._first()
        lines = [text for _, text in self.recipes.get(first, []) if text.strip()]
        if not lines or self.rules[first][1] or not all(SAYS.match(text) for text in lines):
            return
        self.target = next((name for name in USUAL_TARGETS if name in self.rules), "")
        if not self.target:
            text = f"make {first} only says which targets there are: `build:` has to name that for GNU's compilers"
            self.stops.append(FileWord(text, self.rules[first][0]))
        for where, text in list(self.recipes.get(self.target, [])):
            copied, made = made_elsewhere(self.value(text).replace("$@", self.target))
            if copied and self.files.holds(path := self._path(copied)):
                self.read(path)
            if made:
                self._linked.setdefault(made, where)

    def _first(self) -> str:
        names = (name for name in self.rules if not name.startswith(".") and "%" not in name)
        return self.target or next(names, "")

    def see_gpus(self) -> None:
        """Which block has the compiler for GPUs that the program of the first target cannot do without."""
        if self.gpus is None:
            return
        first = self._first()
        needed = [self._path(name) for name in [first, *self._all_asked(first)]]
        if any(
            (self.files.top / re.sub(r"\.o$", ".cu", name)).is_file() for name in needed if name.endswith((".o", ".cu"))
        ):
            self.gpu_block = "rocm" if self.gpus.text == "hipcc" else "cuda"

    def ask_readme(self) -> None:
        """A target that the README makes before the others: ``make libs && make``."""
        for name in ("README.md", "README", "README.rst"):
            path = self._path(name)
            text = self.files.text(path) if (self.files.top / path).is_file() and self.files.holds(path) else ""
            match = re.search(r"\bmake (\w+) *&& *make\b(?! *\w)", text)
            if match and match[1] in self.rules and "clean" not in match[1]:
                self.before.append(FileWord(f"make {match[1]}", self.rules[match[1]][0]))
                return

    def makes(self, library: str) -> bool:
        """Whether a rule makes a library of this name."""
        return not self.targets.isdisjoint((f"lib{library}.a", f"lib{library}.so"))

    def _examples(self, path: str) -> list[str]:
        """Files like it in its folder or one for such, that for GNU compilers first."""
        folder, _, name = path.rpartition("/")
        alike = []
        for place in (folder, *(f"{folder}/{each}".lstrip("/") for each in _CONFIGURATIONS)):
            with suppress(OSError):
                beside = sorted(each.name for each in (self.files.top / place).iterdir())
                names = [each for each in beside if re.match(rf"{re.escape(name)}[._]", each)]
                alike += [f"{place}/{each}".lstrip("/") for each in names]
        return sorted(alike, key=_usual_first)

    def _delegate(self, folder: str, where: Position) -> None:
        """Another Makefile that this one calls, whose programs are this one's."""
        there = next((name for name in NAMES if (self.files.top / folder / name).is_file()), None)
        if there is None or folder.startswith("..") or f"{folder}/{there}" in self._read or len(self._read) > _FILES:
            return
        inner = _Makefile(self.files, f"{folder}/{there}")
        inner._read, inner._copied = self._read, self._copied
        inner.values = {name: value for name, value in self.values.items() if name in ("CC", "CXX", "FC")}
        inner.read(f"{folder}/{there}")
        inner.come_to_includes()
        self.targets |= inner.targets
        self.commands |= inner.commands
        self.asked |= inner.asked
        self._built += inner.programs()
        self.mpi, self.fortran, self.gpus = (
            self.mpi or inner.mpi,
            self.fortran or inner.fortran,
            self.gpus or inner.gpus,
        )
        self.libraries = {**inner.libraries, **self.libraries}
        self.set_at = {**inner.set_at, **self.set_at}
        self.commented = {**inner.commented, **self.commented}
        self.stops += inner.stops
        self.remarks += inner.remarks
        inside = os.path.relpath(folder, self.folder or ".")
        self.before += [FileWord(f"(cd {inside} && {each.text})", each.where) for each in inner.before]

    # What follows from them

    def programs(self) -> list[Built]:
        """What is linked, that which the first rule asks for before the others."""
        first = self._first()
        asked = [first, *self._all_asked(first)]
        own = [
            Built(self._path(name), where)
            for name, where in {**self._implied, **self._linked}.items()
            if re.fullmatch(r"(?!/)[\w.+/-]+", name) and not name.endswith((".o", ".a", ".so", ".x.o"))
        ]
        own = [each for each in own if is_program(each.path)]
        names = {self._path(name): number for number, name in enumerate(asked)}
        own.sort(key=lambda each: names.get(each.path, len(names)))
        found = {each.path: each for each in [*own, *self._built]}
        return in_order(found.values(), "") if len(found) > 1 and not own[:1] else list(found.values())

    def _all_asked(self, target: str) -> list[str]:
        """What a target needs, and what that needs, in the order in which make comes to it."""
        found = dict.fromkeys(self.rules.get(target, (None, []))[1])
        for name in list(found)[:100]:
            found |= dict.fromkeys(self.rules.get(name, (None, []))[1][:100])
        return list(found)

    def _path(self, name: str) -> str:
        """From the project's folder, of a file that the Makefile names."""
        return os.path.normpath(f"{self.folder or '.'}/{name}")


def _said(pattern: re.Pattern[str], text: str, where: Position) -> FileWord | None:
    match = pattern.search(text)
    return FileWord(match[1], Position(where.file, where.line, match.start(1) + 1)) if match else None


_USUAL = ("example", "gnu", "gcc", "gfortran", "gfort", "linux", "generic", "default", "template", "sample", "dist")


def _usual_first(path: str) -> tuple[int, int, int]:
    """The order of examples of a configuration: by a whole word of the name (not armgcc), then by any part of it."""
    words = re.split(r"[._-]", path.rpartition("/")[2].lower())
    whole = next((number for number, word in enumerate(_USUAL) if word in words), len(_USUAL))
    part = next((number for number, word in enumerate(_USUAL) if word in path), len(_USUAL))
    return whole, part, len(words)
