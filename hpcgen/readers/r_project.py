"""R projects: renv.lock, DESCRIPTION, and what scripts load. Read as text; nothing of them is run.

https://rstudio.github.io/renv/reference/lockfiles.html, and "Writing R Extensions" for DESCRIPTION.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpcgen.core.errors import Position
from hpcgen.core.model.own_languages import LanguageProject
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder

_OF_R = "R base compiler datasets graphics grDevices grid methods parallel splines stats stats4 tcltk tools utils"
OF_R = frozenset(_OF_R.split())
"""What R itself has, which nobody installs."""
_NAME = r"[A-Za-z][A-Za-z0-9.]{0,60}"
_DESCRIPTION = ("Depends", "Imports", "LinkingTo")
_LOADED = re.compile(
    rf"\b(?:pacman::)?p_load\s*\(([^()]*)\)"
    rf"|\b(?:library|require|requireNamespace|loadNamespace)\s*\(\s*(?:package\s*=\s*)?[\"']?({_NAME})[\"']?\s*[,)]"
    rf"|\b({_NAME})::[:A-Za-z]"
)


class _Package(msgspec.Struct):
    Source: Any = ""
    Repository: Any = ""


class _R(msgspec.Struct):
    Version: str = ""


class _Lock(msgspec.Struct):
    R: _R = msgspec.field(default_factory=_R)
    Packages: dict[str, _Package] = {}


def read_renv_lock(folder: ProjectFolder, path: str) -> LanguageProject | None:
    """What a lock of renv has; None where the file is none. InputError where it cannot be read."""
    text = folder.text(path, most=MAX_BYTES)
    try:
        lock = msgspec.json.decode(text, type=_Lock)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    names = [name for name in lock.Packages if re.fullmatch(_NAME, name) and name not in OF_R and name != "renv"]
    places = {name: _at(path, text, f'"{name}"') for name in names}
    elsewhere = [
        name for name in names if str(lock.Packages[name].Source) not in ("Repository", "CRAN", "Bioconductor")
    ]
    version = lock.R.Version if re.fullmatch(r"\d+(\.\d+){1,2}", lock.R.Version) else ""
    return LanguageProject(
        path,
        version,
        _at(path, text, '"Version"') if version else None,
        [FileWord(name, places[name]) for name in names],
        [FileWord(name, places[name]) for name in elsewhere],
        locked=True,
        bioconductor=[FileWord(name, places[name]) for name in names if _of_bioconductor(lock.Packages[name])],
    )


def _of_bioconductor(package: _Package) -> bool:
    """Not those of CRAN that renv found while it asked Bioconductor."""
    return str(package.Source) == "Bioconductor" and re.match(r"$|bioc", str(package.Repository), re.I) is not None


def read_description(folder: ProjectFolder, path: str) -> LanguageProject | None:
    """What the DESCRIPTION of a package or a project asks for; None of another file of that name."""
    text = folder.text(path)
    fields: dict[str, tuple[int, str]] = {}
    last = ""
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"([A-Za-z][\w@/-]*):(.*)", line):
            last = match[1]
            fields[last] = (number, match[2])
        elif last and line[:1] in (" ", "\t"):
            fields[last] = (fields[last][0], f"{fields[last][1]}\n{line}")
    if not {"Package", "Type", *_DESCRIPTION} & fields.keys():
        return None
    found: dict[str, FileWord] = {}
    version, where = "", None
    for field in _DESCRIPTION:
        first, value = fields.get(field, (0, ""))
        for match in re.finditer(rf"({_NAME})\s*(?:\(\s*>=?\s*([\d.]+)[^)]*\))?", value):
            at = Position(path, first + value.count("\n", 0, match.start()), 1)
            if match[1] == "R":
                version, where = match[2] or "", at
            elif match[1] not in OF_R:
                found.setdefault(match[1], FileWord(match[1], at))
    return LanguageProject(path, version, where, list(found.values()))


def read_r_script(folder: ProjectFolder, path: str) -> LanguageProject:
    """The packages that a script, or a document with code in R, loads; InputError where it is no text."""
    text = folder.text(path)
    plain = re.sub(r"(?m)^[^\S\n]*#.*$", lambda match: " " * len(match[0]), text)
    found: dict[str, FileWord] = {}
    for match in _LOADED.finditer(plain):
        names = re.findall(_NAME, match[1]) if match[1] else [name for name in (match[2], match[3]) if name]
        for name in names:
            if name not in OF_R and name not in found and name not in ("character.only", "TRUE", "FALSE"):
                line = plain.count("\n", 0, match.start()) + 1
                found[name] = FileWord(name, Position(path, line, 1))
    return LanguageProject(path, packages=list(found.values()))


def _at(path: str, text: str, what: str) -> Position:
    offset = max(0, text.find(what))
    return Position(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
