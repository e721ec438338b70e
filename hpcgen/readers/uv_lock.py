"""uv.lock: https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile, and files that uv 0.5 to 0.13 wrote."""

from __future__ import annotations

import urllib.parse
from typing import Any

from msgspec.structs import replace

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.project import KnownWheel, Needed, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.locked import file_name, known_file, locked_package, not_from_index
from hpcgen.readers.pip_text import Fault, from_git, is_marker, is_range

_OWN = ("editable", "virtual", "directory")
"""Sources of the project itself and of members of its workspace."""


def read_uv_lock(folder: ProjectFolder, path: str) -> PackageFile:
    """What a lock of uv holds, as a graph from the project on; InputError with all that is wrong with it."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    data, top = file.data, Position(path, 1, 1)
    if data.get("version") != 1:
        where = file.key("", "version")
        reader.wrong(f"the lock has version {data.get('version')!r}", where, "1", "regenerate it: uv lock")
    found: list[PackageRequirement] = []
    roots: list[Needed] = []
    ranges: dict[str, str] = {}
    for number, table in enumerate(reader.tables(data, "package", top)):
        where = file.header("package", number)
        source = reader.table(table, "source", where)
        if any(kind in source for kind in _OWN):
            roots += _needs(reader, table, where)
            ranges |= _ranges(reader, table, where)
        elif (package := _package(reader, table, source, where)) is not None:
            found.append(package)
    python = reader.text(data, "requires-python", top)
    reader.problems.raise_as(InputError)
    if found and not roots:
        # A lock of a script, or of a workspace without a project: everything is wanted.
        roots = [Needed(name=each.name, version=each.version) for each in found]
    return PackageFile(
        file=path,
        kind="uv",
        locked=True,
        requirements=found,
        roots=roots,
        ranges=ranges,
        group_names=sorted({each.extra for each in roots if each.extra}),
        requires_python=python,
        python_where=file.key("", "requires-python") if python else None,
        read=dict(folder.read),
    )


def _package(
    reader: Reader, table: dict[str, Any], source: dict[str, Any], where: Position
) -> PackageRequirement | None:
    name = normal_name(reader.text(table, "name", where, needed=True))
    if isinstance(address := source.get("git"), str):
        return _of_git(reader, table, address, name, where)
    if "registry" not in source:
        from_where = "an address" if "url" in source else "a path"
        not_from_index(reader, name, from_where, where)
        return None
    wheels = [_file(reader, each, where) for each in reader.tables(table, "wheels", where)]
    sdist = _file(reader, reader.table(table, "sdist", where), where) if "sdist" in table else None
    version = reader.text(table, "version", where, needed=True)
    needs = _needs(reader, table, where)
    return locked_package(reader, name, where, wheels, sdist, version=version, needs=needs)


def _of_git(
    reader: Reader, table: dict[str, Any], address: str, name: str, where: Position
) -> PackageRequirement | None:
    """A package of a repository, of which uv locks the commit: ``https://HOST/PATH?rev=main#COMMIT``."""
    url, _, commit = address.partition("#")
    url, _, query = url.partition("?")
    folder = urllib.parse.parse_qs(query).get("subdirectory", [""])[0]
    try:
        found = from_git(name, url, commit, folder, "", where)
    except Fault as fault:
        reader.wrong(fault.message, where, "", fault.remedy)
        return None
    return replace(found, version=reader.text(table, "version", where), needs=_needs(reader, table, where))


def _needs(reader: Reader, table: dict[str, Any], where: Position) -> list[Needed]:
    """What a package needs, always and with its extras; of the project also with its groups."""
    found = [_needed(reader, each, "", where) for each in reader.tables(table, "dependencies", where)]
    for kind in ("optional-dependencies", "dev-dependencies"):
        for extra, _ in sorted(reader.table(table, kind, where).items()):
            listed = reader.tables(table[kind], extra, where)
            found += [_needed(reader, each, normal_name(extra), where) for each in listed]
    return found


def _ranges(reader: Reader, table: dict[str, Any], where: Position) -> dict[str, str]:
    """What the project itself asks for, by name; of what it asks for several times nothing."""
    found: dict[str, list[str]] = {}
    for each in reader.tables(reader.table(table, "metadata", where), "requires-dist", where):
        name = normal_name(reader.text(each, "name", where, needed=True))
        found.setdefault(name, []).append(reader.text(each, "specifier", where))
    return {name: said[0] for name, said in sorted(found.items()) if len(said) == 1 and is_range(said[0])}


def _needed(reader: Reader, table: dict[str, Any], extra: str, where: Position) -> Needed:
    marker = reader.text(table, "marker", where)
    if marker and not is_marker(marker):
        reader.wrong(f"a marker cannot be read: {marker[:120]!r}", where, "such as python_version < '3.12'")
    return Needed(
        name=normal_name(reader.text(table, "name", where, needed=True)),
        version=reader.text(table, "version", where),
        extras=[normal_name(each) for each in reader.texts(table, "extra", where)],
        marker=marker,
        extra=extra,
    )


def _file(reader: Reader, table: dict[str, Any], where: Position) -> KnownWheel:
    sha256 = reader.text(table, "hash", where)
    name = file_name(reader.text(table, "url", where) or reader.text(table, "path", where))
    return known_file(name, sha256)
