"""pyproject.toml's table [project], or Poetry's: what the project is called and which commands it has."""

from __future__ import annotations

import re

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.own_project import FileWord, ProjectTable
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.toml_file import Reader, TomlFile

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read_project_table(folder: ProjectFolder, path: str) -> ProjectTable:
    """What the file says of the project itself; InputError with all that is wrong there."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    top = Position(path, 1, 1)
    tables = {
        "project": reader.table(file.data, "project", top),
        "tool.poetry": reader.table(reader.table(file.data, "tool", top), "poetry", top),
    }
    name = next((each for each, table in tables.items() if table), "project")
    table = tables[name]
    texts = {key: reader.text(table, key, file.key(name, key)) for key in ("name", "description")}
    said = {key: FileWord(text, file.key(name, key)) for key, text in texts.items() if text}
    scripts = {}
    for command, target in reader.table(table, "scripts", file.header(name)).items():
        where = file.key(f"{name}.scripts", command)
        if isinstance(target, str) and _TARGET.fullmatch(target):
            scripts[command] = FileWord(target, where)
        elif isinstance(target, str):
            reader.wrong(f"{target[:80]!r} is no function of a module", where, "such as package.module:main")
    reader.problems.raise_as(InputError)
    return ProjectTable(said.get("name"), said.get("description"), scripts)
