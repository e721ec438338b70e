"""pdm.lock, as PDM 2.11 and later write it.

Source: https://pdm-project.org/en/latest/usage/lockfile/, and locks that PDM 2.12 and 2.25.9 wrote.
"""

from __future__ import annotations

from typing import Any

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.project import KnownWheel, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.locked import file_name, known_file, locked_package, not_from_index

_MAIN = "default"
_NEEDED = "inherit_metadata"
"""The strategy that writes groups and markers to each package; PDM's default."""
_ELSEWHERE = {"path": "a path", "url": "an address", "git": "an address", "hg": "an address", "svn": "an address"}


def read_pdm_lock(folder: ProjectFolder, path: str) -> PackageFile:
    """Read a lock of PDM; InputError with all that is wrong with it.

    Locks without the strategy ``inherit_metadata`` are refused: they do not say which package is for which group and
    environment. So are locks for other systems alone.
    """
    file = TomlFile(folder, path)
    reader = Reader(file)
    metadata = reader.table(file.data, "metadata", Position(path, 1, 1))
    header = file.header("metadata")
    python, python_where = _check(reader, metadata, header)
    wanted: list[PackageRequirement] = []
    groups: dict[str, list[PackageRequirement]] = {}
    for number, table in enumerate(reader.tables(file.data, "package", header)):
        for group, package in _package(reader, table, file.header("package", number)):
            (wanted if group == _MAIN else groups.setdefault(group, [])).append(package)
    named = {normal_name(each) for each in reader.texts(metadata, "groups", header)}
    reader.problems.raise_as(InputError)
    return PackageFile(
        file=path,
        kind="pdm",
        locked=True,
        requirements=wanted,
        groups=dict(sorted(groups.items())),
        group_names=sorted({*groups, *named} - {_MAIN}),
        requires_python=python,
        python_where=python_where if python else None,
        read=dict(folder.read),
    )


def _check(reader: Reader, metadata: dict[str, Any], header: Position) -> tuple[str, Position]:
    """The range of Pythons of a lock with one target, and its place; InputError for a lock that is not enough."""
    version = reader.text(metadata, "lock_version", header, needed=True)
    if version and not version.startswith("4."):
        where = reader.file.key("metadata", "lock_version")
        reader.wrong(f"the lock has version {version}", where, "4, which PDM 2 writes", "regenerate it: pdm lock")
    elif version and _NEEDED not in reader.texts(metadata, "strategy", header):
        message = "the lock does not say which package is for which group and Python"
        remedy = f"pdm lock --strategy {_NEEDED}, with PDM 2.11 or newer"
        reader.wrong(message, header, f"a lock with the strategy {_NEEDED}", remedy)
    targets = reader.tables(metadata, "targets", header)
    where = reader.file.header("metadata.targets")
    platforms = [reader.text(each, "platform", where) for each in targets]
    if platforms and not any(each == "" or each.startswith(("linux", "manylinux")) for each in platforms):
        message = f"the lock is for {', '.join(platforms)} alone"
        reader.wrong(message, where, "a lock for Linux", "pdm lock --platform linux --append")
    reader.problems.raise_as(InputError)
    return (reader.text(targets[0], "requires_python", where) if len(targets) == 1 else ""), where


def _package(reader: Reader, table: dict[str, Any], where: Position) -> list[tuple[str, PackageRequirement]]:
    """A package for each group that it is in."""
    # redis[hiredis] is an entry beside that of redis, with the same files; the project itself comes as a copy.
    if "extras" in table or table.get("path") == ".":
        return []
    name = normal_name(reader.text(table, "name", where, needed=True))
    if source := next((said for key, said in _ELSEWHERE.items() if key in table), ""):
        not_from_index(reader, name, source, where)
        return []
    files = [_file(reader, each, where) for each in reader.tables(table, "files", where)]
    wheels = [each for each in files if each.file.endswith(".whl")]
    sdist = next((each for each in files if not each.file.endswith(".whl")), None)
    version, marker = reader.text(table, "version", where, needed=True), reader.text(table, "marker", where)
    package = locked_package(reader, name, where, wheels, sdist, version=version, marker=marker)
    return [(normal_name(group), package) for group in reader.texts(table, "groups", where)]


def _file(reader: Reader, table: dict[str, Any], where: Position) -> KnownWheel:
    """A file by its name, or with the strategy ``static_urls`` by its address."""
    name = reader.text(table, "file", where) or file_name(reader.text(table, "url", where))
    return known_file(name, reader.text(table, "hash", where))
