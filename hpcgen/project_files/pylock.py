"""pylock.toml: https://packaging.python.org/en/latest/specifications/pylock-toml/."""

from __future__ import annotations

import re
from typing import Any

from packaging.utils import canonicalize_name

from hpcgen.errors import InputError, Position
from hpcgen.model.requirement import KnownWheel, PackageFile, Requirement
from hpcgen.project_files.folder import ProjectFolder
from hpcgen.project_files.locked import check_package, file_name, hashes_of
from hpcgen.project_files.toml_file import Reader, TomlFile


def read_pylock(folder: ProjectFolder, path: str) -> PackageFile:
    """What a lock of PEP 751 holds, with all its files and hashes; InputError with all that is wrong with it."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    data, top = file.data, Position(path, 1, 1)
    version = reader.text(data, "lock-version", top, needed=True)
    if version and not re.fullmatch(r"1\.\d+", version):
        where = file.key("", "lock-version")
        reader.wrong(f"the lock has version {version}", where, "1.0", "write it anew with a tool that writes 1.0")
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


def _package(reader: Reader, number: int, table: dict[str, Any]) -> Requirement | None:
    where = reader.file.header("packages", number)
    name = canonicalize_name(reader.text(table, "name", where, needed=True))
    foreign = next((kind for kind in ("vcs", "directory", "archive") if kind in table), "")
    if foreign == "directory" and reader.table(table, "directory", where).get("path") == ".":
        # The project itself, which comes into an image as a copy.
        return None
    if foreign:
        reader.wrong(
            f"{name} is from {'a folder' if foreign == 'directory' else 'an address'}, not from a package index",
            where,
            remedy="lock a release of it; code of your own comes into the image by `copy` in the stack",
        )
        return None
    wheels = [_file(reader, each, where) for each in reader.tables(table, "wheels", where)]
    sdist = _file(reader, reader.table(table, "sdist", where), where) if "sdist" in table else None
    requirement = Requirement(
        name=name,
        where=where,
        specifier=f"=={reader.text(table, 'version', where, needed=True)}",
        version=reader.text(table, "version", where),
        marker=reader.text(table, "marker", where),
        hashes=hashes_of(wheels, sdist),
        wheels=wheels,
        sdist=sdist,
    )
    check_package(reader, requirement)
    return requirement


def _file(reader: Reader, table: dict[str, Any], where: Position) -> KnownWheel:
    """A file of a package: its own name, or that of its address."""
    name = reader.text(table, "name", where) or file_name(
        reader.text(table, "url", where) or reader.text(table, "path", where)
    )
    sha256 = reader.text(reader.table(table, "hashes", where), "sha256", where)
    return KnownWheel(file=name, sha256=f"sha256:{sha256}" if re.fullmatch(r"[0-9a-f]{64}", sha256) else None)
