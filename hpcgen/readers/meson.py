"""meson.build: programs, dependencies and options. Read as text; nothing is run.

Form: https://mesonbuild.com/Syntax.html and https://mesonbuild.com/Build-options.html
"""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, BuildOption, FileWord, WantedLibrary
from hpcgen.readers.built_programs import Built, in_order, program_files, set_aside
from hpcgen.readers.folder import ProjectFolder

NAME = "meson.build"
FOLDER = "build"
_OPTIONS = ("meson.options", "meson_options.txt")
_CALL = re.compile(r"\b(project|executable|dependency|subdir|add_languages|option)\s*\(")
_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'")
_FILES, _MOST, _LONGEST = 60, 2000, 6000
"""Files, calls of one, characters of a call."""
_OFF = {"false", "disabled"}
_TOOLS = ["meson", "ninja-build", "pkg-config"]


def read_meson(folder: ProjectFolder, path: str = NAME) -> BuildFile:
    """What the file and those of its subfolders say; InputError where one cannot be read."""
    reading = _Meson(folder, path)
    reading.file(path, "")
    return BuildFile(
        path,
        "meson",
        reading.above,
        reading.mpi or next((FileWord(each.word, each.where) for each in reading.options), None),
        reading.fortran,
        reading.gpus,
        reading.gpu_block,
        programs=program_files(in_order(reading.programs, reading.project)),
        libraries=list(reading.libraries.values()),
        options=reading.options,
        tools=_TOOLS,
        fetches=reading.wraps(),
    )


class _Meson:
    def __init__(self, folder: ProjectFolder, path: str) -> None:
        self.folder = folder
        self.above = path.rpartition("/")[0]
        self.project = ""
        self.mpi: FileWord | None = None
        self.fortran: FileWord | None = None
        self.gpus: FileWord | None = None
        self.gpu_block = ""
        self.programs: list[Built] = []
        self.libraries: dict[str, WantedLibrary] = {}
        self.options: list[BuildOption] = []
        self._off: set[str] = set()
        self._read: set[str] = set()
        for name in _OPTIONS:
            each = f"{self.above}/{name}".lstrip("/")
            if (folder.top / each).is_file():
                self._defaults(each)
                break

    def _defaults(self, path: str) -> None:
        """Options that are off; that of MPI is turned on."""
        for name, inner, where in _calls(path, self.folder.text(path)):
            words = _TEXT.findall(inner)
            match = re.search(r"\bvalue\s*:\s*'?(\w+)", inner)
            if name != "option" or not words or match is None or match[1] not in _OFF:
                continue
            if re.search(r"(^|[_-])(mpi|parallel)($|[_-])", words[0], re.I):
                value = "true" if match[1] == "false" else "enabled"
                said = re.search(r"description\s*:\s*'([^']*)'", inner)
                self.options.append(BuildOption(f"-D{words[0]}={value}", said[1] if said else "", where))
            else:
                self._off.add(words[0])

    def file(self, path: str, below: str) -> None:
        """One file, whose programs are built in the subfolder ``below``."""
        if path in self._read or len(self._read) >= _FILES:
            return
        self._read.add(path)
        text = self.folder.text(path)
        for name, inner, where in _calls(path, text):
            words = _TEXT.findall(inner)
            first = words[0] if words else ""
            if name == "project":
                self.project = self.project or first
                self._languages(words[1:], first, where)
            elif name == "add_languages":
                self._languages(words, first, where)
            elif name == "executable":
                named = self.project if re.match(r"\s*meson\.project_name\(\)", inner) else first
                place = "/".join(part for part in (self.above, FOLDER, below, named) if part)
                installed = bool(re.search(r"\binstall\s*:\s*(?!false)", inner))
                if named:
                    self.programs.append(Built(place, where, below, "mpi" in inner, installed))
            elif name == "dependency" and first:
                self._dependency(first, inner, where, below)
            elif name == "subdir" and re.fullmatch(r"[\w./-]+", first):
                inside = self.folder.beside(path, f"{first}/{NAME}")
                if (self.folder.top / inside).is_file():
                    self.file(inside, f"{below}/{first}".strip("/"))

    def _languages(self, words: list[str], first: str, where: Position) -> None:
        if "fortran" in [word.lower() for word in words]:
            self.fortran = self.fortran or FileWord("fortran", where)
        if "cuda" in words:
            self.gpus, self.gpu_block = self.gpus or FileWord("cuda", where), "cuda"

    def _dependency(self, name: str, inner: str, where: Position, below: str) -> None:
        if name.lower() in ("mpi", "ompi", "mpich"):
            self.mpi = self.mpi or FileWord(f"dependency('{name}')", where)
        elif name.lower() in ("cuda", "hip"):
            self.gpus = self.gpus or FileWord(f"dependency('{name}')", where)
        else:
            match = re.search(r"\brequired\s*:\s*(?:get_option\('([\w-]+)'\)|(\w+))", inner)
            off = match is not None and (match[1] in self._off or match[2] == "false")
            if not (match is not None and match[1] in self._off):
                required = not off and not set_aside(below) and "fallback" not in inner
                self.libraries.setdefault(name, WantedLibrary(name, f"dependency('{name}')", where, required))

    def wraps(self) -> list[FileWord]:
        """Projects that Meson downloads where their library is not there."""
        place = f"{self.above}/subprojects".lstrip("/")
        try:
            names = sorted(each.name for each in (self.folder.top / place).iterdir() if each.suffix == ".wrap")
        except OSError:
            return []
        return [
            FileWord(name, Position(f"{place}/{name}", 1, 1))
            for name in names
            if not (self.folder.top / place / name.removesuffix(".wrap")).is_dir()
        ]


def _calls(path: str, text: str) -> list[tuple[str, str, Position]]:
    """Calls of the functions that matter, with what is between their parentheses."""
    plain = re.sub(r"(?m)^([^'\n]*(?:'[^'\n]*'[^'\n]*)*)#.*$", lambda match: match[1], text)
    found, line, counted = [], 1, 0
    for match in _CALL.finditer(plain):
        depth, end = 1, match.end()
        while end < min(len(plain), match.end() + _LONGEST) and depth:
            depth += (plain[end] == "(") - (plain[end] == ")")
            end += 1
        line, counted = line + plain.count("\n", counted, match.start()), match.start()
        where = Position(path, line, match.start() - plain.rfind("\n", 0, match.start()))
        found.append((match[1], plain[match.end() : end - 1], where))
        if len(found) >= _MOST:
            break
    return found
