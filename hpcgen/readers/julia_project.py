"""Julia projects: Project.toml and Manifest.toml, by https://pkgdocs.julialang.org/v1/toml-files/."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_languages import LanguageProject
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import PartlyReadError, ProjectFolder

PROJECTS = ("JuliaProject.toml", "Project.toml")
_NAME = r"[A-Za-z]\w{0,80}"


def read_julia_project(folder: ProjectFolder, path: str) -> LanguageProject:
    """What a project asks for, and for which Julia; InputError where it is no TOML."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    top = Position(path, 1, 1)
    packages = reader.table(file.data, "deps", top)
    compat = reader.table(file.data, "compat", top)
    julia = reader.text(compat, "julia", file.key("compat", "julia"))
    found = LanguageProject(
        path,
        _range(julia),
        file.key("compat", "julia") if julia else None,
        [FileWord(name, file.key("deps", name)) for name in packages if re.fullmatch(_NAME, name)],
    )
    if reader.problems:
        raise PartlyReadError(reader.problems, found)
    return found


def read_manifest(folder: ProjectFolder, path: str) -> LanguageProject:
    """The Julia that a manifest was made by, and what it has; InputError where it is no TOML."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    version = reader.text(file.data, "julia_version", Position(path, 1, 1))
    listed = file.data["deps"] if isinstance(file.data.get("deps"), dict) else file.data
    names = [name for name, value in listed.items() if isinstance(value, list) and re.fullmatch(_NAME, name)]
    minor = re.match(r"1\.(\d{1,2})(?!\d)", version)
    return LanguageProject(
        path,
        f">=1.{minor[1]},<1.{int(minor[1]) + 1}" if minor else "",
        file.key("", "julia_version") if minor else None,
        [FileWord(name, Position(path, 1, 1)) for name in names],
        locked=True,
    )


def _range(compat: str) -> str:
    """What ``[compat]`` says of Julia itself, in hpcgen's form: from the oldest that it names on, or just that one."""
    asked = [part.strip() for part in compat.split(",") if part.strip()]
    plain = [match for part in asked if (match := re.fullmatch(r"([\^~=]|>=|≥)?\s*(1(?:\.\d{1,3}){0,2})", part))]
    if not plain or len(plain) != len(asked):
        return ""
    first = min(plain, key=lambda match: [int(each) for each in match[2].split(".")])
    if first[1] == "~" or (first[1] == "=" and len(plain) == 1):
        parts = first[2].split(".")
        if first[1] == "=" or len(parts) < 2:
            return f"=={first[2]}"
        return f">={first[2]},<1.{int(parts[1]) + 1}"
    return f">={first[2]},<2"
