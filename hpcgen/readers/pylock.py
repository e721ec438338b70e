"""pylock.toml: https://packaging.python.org/en/latest/specifications/pylock-toml/."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.project import KnownWheel, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.locked import file_name, known_file, locked_package, not_from_index


def read_pylock(folder: ProjectFolder, path: str) -> PackageFile:
    """What a lock of PEP 751 holds, with all its files and hashes; InputError with all that is wrong with it."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    data, top = file.data, Position(path, 1, 1)
    version = reader.text(data, "lock-version", top, needed=True)
    if version and not re.fullmatch(r"1\.\d+", version):
        where = file.key("", "lock-version")
        reader.wrong(f"the lock has version {version}", where, "1.0", "regenerate it with a tool that writes 1.0")
    tables = reader.tables(data, "packages", top)
    found = [_package(reader, number, table) for number, table in enumerate(tables)]
    python = reader.text(data, "requires-python", top)
    names = [*reader.texts(data, "extras", top), *reader.texts(data, "dependency-groups", top)]
    default = reader.texts(data, "default-groups", top)
    reader.problems.raise_as(InputError)
    return PackageFile(
        file=path,
        kind="pylock",
        locked=True,
        requirements=[each for each in found if each is not None],
        group_names=sorted(set(names) - set(default)),
        default_groups=sorted(default),
        requires_python=python,
        python_where=file.key("", "requires-python") if python else None,
        read=dict(folder.read),
    )


def _package(reader: Reader, number: int, table: dict[str, Any]) -> PackageRequirement | None:
    where = reader.file.header("packages", number)
    name = normal_name(reader.text(table, "name", where, needed=True))
    foreign = next((kind for kind in ("vcs", "directory", "archive") if kind in table), "")
    if foreign == "directory" and reader.table(table, "directory", where).get("path") == ".":
        # The project itself, which comes into an image as a copy.
        return None
    if foreign:
        not_from_index(reader, name, "a folder" if foreign == "directory" else "an address", where)
        return None
    wheels = [_file(reader, each, where) for each in reader.tables(table, "wheels", where)]
    sdist = _file(reader, reader.table(table, "sdist", where), where) if "sdist" in table else None
    version = reader.text(table, "version", where, needed=True)
    marker = reader.text(table, "marker", where)
    return locked_package(reader, name, where, wheels, sdist, version=version, marker=marker)


def _file(reader: Reader, table: dict[str, Any], where: Position) -> KnownWheel:
    """A file of a package: its own name, or that of its address."""
    name = reader.text(table, "name", where) or file_name(
        reader.text(table, "url", where) or reader.text(table, "path", where)
    )
    sha256 = reader.text(reader.table(table, "hashes", where), "sha256", where)
    return known_file(name, f"sha256:{sha256}")
