"""poetry.lock, as Poetry 2 writes it: each package has the groups and the environments that it is for."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.project import KnownWheel, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.locked import known_file, locked_package, not_from_index
from hpcgen.readers.pip_text import Fault, from_git, is_marker

_MAIN = "main"


def read_poetry_lock(folder: ProjectFolder, path: str) -> PackageFile:
    """What a lock of Poetry holds; InputError with all that is wrong with it.

    Locks of Poetry 1 are refused: they do not say which package is for which environment.
    """
    file = TomlFile(folder, path)
    reader = Reader(file)
    metadata = reader.table(file.data, "metadata", Position(path, 1, 1))
    header = file.header("metadata")
    version = reader.text(metadata, "lock-version", header, needed=True)
    if version and not re.fullmatch(r"2\.[1-9]\d*", version):
        where = file.key("metadata", "lock-version")
        reader.wrong(
            f"the lock has version {version}", where, "2.1, which Poetry 2 writes", "poetry lock, with Poetry 2"
        )
        reader.problems.raise_as(InputError)
    wanted: list[PackageRequirement] = []
    groups: dict[str, list[PackageRequirement]] = {}
    for number, table in enumerate(reader.tables(file.data, "package", header)):
        for group, package in _package(reader, table, file.header("package", number)):
            (wanted if group == _MAIN else groups.setdefault(group, [])).append(package)
    extras = reader.table(file.data, "extras", header)
    python = reader.text(metadata, "python-versions", header)
    reader.problems.raise_as(InputError)
    return PackageFile(
        file=path,
        kind="poetry",
        locked=True,
        requirements=wanted,
        groups=dict(sorted(groups.items())),
        group_names=sorted({*groups, *map(normal_name, extras)}),
        requires_python="" if python == "*" else python,
        python_where=file.key("metadata", "python-versions") if python else None,
        read=dict(folder.read),
    )


def _package(reader: Reader, table: dict[str, Any], where: Position) -> list[tuple[str, PackageRequirement]]:
    """A package for each group that it is in; what belongs to an extra says that in its marker."""
    name = normal_name(reader.text(table, "name", where, needed=True))
    source = reader.table(table, "source", where)
    kind = source.get("type", "legacy")
    if kind not in ("legacy", "git"):
        not_from_index(reader, name, f"{kind!s:.20}", where)
        return []
    version = reader.text(table, "version", where, needed=True)
    package: PackageRequirement | None
    if kind == "git":
        package = _of_git(reader, name, source, version, where)
        if package is None:
            return []
    else:
        package = _of_index(reader, table, name, version, where)
    named = [normal_name(each) for each in reader.texts(table, "groups", where)]
    markers = table.get("markers", "")
    by_group = markers if isinstance(markers, dict) else dict.fromkeys(named, markers)
    found: list[tuple[str, PackageRequirement]] = []
    for group in named:
        marker = reader.text(by_group, group, where)
        if marker and not is_marker(marker):
            reader.wrong(f"the marker of {name} cannot be read: {marker[:120]!r}", where)
        found.append((group, msgspec.structs.replace(package, marker=marker)))
    return found


def _of_index(reader: Reader, table: dict[str, Any], name: str, version: str, where: Position) -> PackageRequirement:
    files = [_file(reader, each, where) for each in reader.tables(table, "files", where)]
    wheels = [each for each in files if each.file.endswith(".whl")]
    sdist = next((each for each in files if not each.file.endswith(".whl")), None)
    return locked_package(reader, name, where, wheels, sdist, version=version)


def _of_git(
    reader: Reader, name: str, source: dict[str, Any], version: str, where: Position
) -> PackageRequirement | None:
    """A package of a repository, of which Poetry locks the commit."""
    url, commit, folder = (reader.text(source, key, where) for key in ("url", "resolved_reference", "subdirectory"))
    try:
        return msgspec.structs.replace(from_git(name, url, commit, folder, "", where), version=version)
    except Fault as fault:
        reader.wrong(fault.message, where, "", fault.remedy)
        return None


def _file(reader: Reader, table: dict[str, Any], where: Position) -> KnownWheel:
    sha256 = reader.text(table, "hash", where)
    return known_file(reader.text(table, "file", where, needed=True), sha256)
