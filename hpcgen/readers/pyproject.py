"""pyproject.toml: what a project needs (PEP 621, PEP 735), and Poetry's own tables for the same."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.own_project import BuildBackend, FileWord, ProjectTable
from hpcgen.core.model.project import FileNote, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.data_files import Reader, TomlFile
from hpcgen.readers.folder import PartlyReadError, ProjectFolder
from hpcgen.readers.pip_text import (
    EXPECTED,
    LONGEST,
    Fault,
    from_git,
    git_requirement,
    is_git,
    is_marker,
    is_range,
    refused_name,
    requirement,
)

_OF_HISTORY = re.compile(r"setuptools[_-]scm|versioningit|hatch-vcs")
_DEEPEST = 20
"""Groups that include groups."""


def read_pyproject(folder: ProjectFolder, path: str) -> PackageFile:
    """What a project says that it needs; InputError with all that is wrong with it.

    What only its build needs (``[build-system]``) is left out, and so is the project itself.
    """
    file = TomlFile(folder, path)
    reading = _Reading(file)
    project = reading.reader.table(file.data, "project", Position(path, 1, 1))
    where = file.header("project")
    wanted = reading.listed(reading.reader.texts(project, "dependencies", where), "project", "dependencies")
    dynamic = reading.reader.texts(project, "dynamic", where)
    lists, extra_lists = reading.lists_beside()
    for name in lists if "dependencies" in dynamic else []:
        wanted += reading.from_list(folder, path, name)
    if "dependencies" in dynamic and not lists:
        place = file.key("project", "dynamic")
        message = "the dependencies are worked out when the project is built"
        reading.reader.wrong(
            message, place, "a list", "name the file that contains them in addition to or instead of this one"
        )
    beside = {
        normal_name(extra): [each for name in names for each in reading.from_list(folder, path, name)]
        for extra, names in (extra_lists.items() if "optional-dependencies" in dynamic else ())
    }
    groups = reading.extras(project, where) | beside | reading.groups()
    poetry_wanted, poetry_groups, poetry_python = reading.poetry()
    python = reading.reader.text(project, "requires-python", where)
    if python and not is_range(python):
        message = f"{python[:80]!r} is not a range of versions"
        reading.reader.wrong(message, file.key("project", "requires-python"), "such as >=3.10")
    for name, group in poetry_groups.items():
        groups.setdefault(name, []).extend(group)
    table = "project" if python else "tool.poetry.dependencies"
    key = "requires-python" if python else "python"
    found = PackageFile(
        file=path,
        kind="pyproject",
        requirements=wanted or poetry_wanted,
        groups=dict(sorted(groups.items())),
        group_names=sorted(groups),
        requires_python=python or poetry_python,
        python_where=file.key(table, key) if python or poetry_python else None,
        refused=reading.refused,
        read=dict(folder.read),
    )
    if reading.reader.problems:
        raise PartlyReadError(reading.reader.problems, found)
    return found


class _Reading:
    """The tables of one file."""

    def __init__(self, file: TomlFile) -> None:
        self.file = file
        self.reader = Reader(file)
        self._own: set[str] = set()
        self.refused: list[FileNote] = []

    def listed(self, texts: list[str], table: str, key: str) -> list[PackageRequirement]:
        """Requirements of a list in pip's form."""
        found = []
        for text in texts:
            where = self.file.key(table, key, text)
            try:
                found.append(git_requirement(text, where) if is_git(text) else requirement(text, where))
            except Fault as fault:
                self.reader.wrong(fault.message, where, EXPECTED, fault.remedy)
                self.refused.append(FileNote(text=refused_name(text), where=where))
        return found

    def lists_beside(self) -> tuple[list[str], dict[str, list[str]]]:
        """The lists of requirements that setuptools or hatchling reads for what is not in the file itself.

        Sources: setuptools' documentation, "Dynamic Metadata"; the page of hatch-requirements-txt 0.3.0 in the index.
        """
        setuptools = self._below("tool", "setuptools", "dynamic")
        hatch = self._below("tool", "hatch", "metadata", "hooks", "requirements_txt")
        lists = [_table(setuptools, "dependencies").get("file"), hatch.get("files") or hatch.get("filename")]
        told = _table(setuptools, "optional-dependencies")
        extras = {name: _table(told, name).get("file") for name in told}
        extras |= _table(hatch, "optional-dependencies")
        return [name for each in lists for name in _names(each)], {name: _names(each) for name, each in extras.items()}

    def _below(self, *keys: str) -> dict[str, Any]:
        table = self.file.data
        for key in keys:
            table = _table(table, key)
        return table

    def from_list(self, folder: ProjectFolder, path: str, name: str) -> list[PackageRequirement]:
        """What such a list asks for."""
        from hpcgen.readers.requirements_txt import read_requirements

        found: PackageFile | None = None
        with self.reader.problems.caught():
            try:
                found = read_requirements(folder, folder.beside(path, name))
            except PartlyReadError as error:
                self.reader.problems += error.problems
                found = error.file
        self.refused += found.refused if found is not None else []
        return found.requirements if found is not None else []

    def extras(self, project: dict[str, Any], where: Position) -> dict[str, list[PackageRequirement]]:
        """``[project.optional-dependencies]``; what an extra takes of the project's own extras is put in its place."""
        table = self.reader.table(project, "optional-dependencies", where)
        own = normal_name(self.reader.text(project, "name", where))
        name = "project.optional-dependencies"
        lists: dict[str, list[PackageRequirement]] = {
            normal_name(extra): self.listed(self.reader.texts(table, extra, where), name, extra)
            for extra in sorted(table)
        }
        return {extra: _without_own(own, extra, lists, ()) for extra in lists}

    def groups(self) -> dict[str, list[PackageRequirement]]:
        """``[dependency-groups]``, with what they include of one another."""
        top = self.file.header("dependency-groups")
        table = self.reader.table(self.file.data, "dependency-groups", top)
        return {normal_name(name): self._group(table, name, ()) for name in sorted(table)}

    def _group(self, table: dict[str, Any], name: str, above: tuple[str, ...]) -> list[PackageRequirement]:
        where = self.file.key("dependency-groups", name)
        named = next((each for each in table if normal_name(each) == normal_name(name)), None)
        if named is None or named in above or len(above) > _DEEPEST or not isinstance(table[named], list):
            self.reader.wrong(
                f"the group {name[:80]!r} does not exist, or includes itself", where, "a list of requirements"
            )
            return []
        found: list[PackageRequirement] = []
        for entry in table[named]:
            if isinstance(entry, str):
                found += self.listed([entry], "dependency-groups", named)
            elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
                found += self._group(table, entry["include-group"], (*above, named))
            else:
                self.reader.wrong(f"an entry of {named} is not a requirement", where, EXPECTED)
        return found

    def poetry(self) -> tuple[list[PackageRequirement], dict[str, list[PackageRequirement]], str]:
        """What ``[tool.poetry]`` says: the main dependencies, groups and extras, and the range of Pythons."""
        top = Position(self.file.path, 1, 1)
        table = self.reader.table(self.reader.table(self.file.data, "tool", top), "poetry", top)
        main = dict(self.reader.table(table, "dependencies", top))
        python = main.pop("python", "")
        wanted, optional = self._poetry_list(main, "tool.poetry.dependencies")
        groups: dict[str, list[PackageRequirement]] = {}
        for extra, names in sorted(self.reader.table(table, "extras", top).items()):
            members = [normal_name(each) for each in names if isinstance(each, str)]
            groups[normal_name(extra)] = [each for each in optional if each.name in members]
        if "dev-dependencies" in table:
            dev = self.reader.table(table, "dev-dependencies", top)
            groups["dev"] = self._poetry_list(dev, "tool.poetry.dev-dependencies")[0]
        for name, group in sorted(self.reader.table(table, "group", top).items()):
            listed = self.reader.table(group if isinstance(group, dict) else {}, "dependencies", top)
            groups[normal_name(name)] = self._poetry_list(listed, f"tool.poetry.group.{name}.dependencies")[0]
        try:
            return wanted, groups, pep440((isinstance(python, str) and python) or "*")
        except Fault as fault:
            self.reader.wrong(
                fault.message, self.file.key("tool.poetry.dependencies", "python"), "such as ^3.10", fault.remedy
            )
            return wanted, groups, ""

    def _poetry_list(
        self, table: dict[str, Any], header: str
    ) -> tuple[list[PackageRequirement], list[PackageRequirement]]:
        """The requirements of a table, and those that only extras have."""
        wanted: list[PackageRequirement] = []
        optional: list[PackageRequirement] = []
        for name, said in table.items():
            where = self.file.key(header, name)
            for each in said if isinstance(said, list) else [said]:
                try:
                    found = poetry_requirement(name, each, where)
                    only_extra = isinstance(each, dict) and each.get("optional") is True
                    (optional if only_extra else wanted).append(found)
                except Fault as fault:
                    self.reader.wrong(fault.message, where, 'such as numpy = "^1.26"', fault.remedy)
        return wanted, optional


def _table(above: dict[str, Any], key: str) -> dict[str, Any]:
    found = above.get(key)
    return found if isinstance(found, dict) else {}


def _names(said: Any) -> list[str]:
    return [each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str)]


def _without_own(
    own: str, extra: str, lists: dict[str, list[PackageRequirement]], above: tuple[str, ...]
) -> list[PackageRequirement]:
    """An extra's requirements, with those of the project's own extras that it names (``demo[plot]``)."""
    found: list[PackageRequirement] = []
    for each in lists.get(extra, []):
        if each.name != own:
            found.append(each)
            continue
        for other in each.extras:
            if other not in (*above, extra) and len(above) < _DEEPEST:
                found += _without_own(own, other, lists, (*above, extra))
    return found


# Ranges of versions as Poetry writes them: https://python-poetry.org/docs/dependency-specification/.

_VERSION = r"\d{1,9}(?:\.\d{1,9})*"
_FOREIGN = ("git", "path", "url", "file")


def poetry_requirement(name: str, said: Any, where: Position) -> PackageRequirement:
    """One entry of a table of Poetry's dependencies; :class:`Fault` where it is none."""
    table = {"version": said} if isinstance(said, str) else said
    if not isinstance(table, dict):
        raise Fault(f"{name} has neither a range of versions nor a table", f'write {name} = "*", or a range')
    if isinstance(address := table.get("git"), str):
        commit, folder = (_text(table, key) for key in ("rev", "subdirectory"))
        at = commit or _text(table, "tag") or _text(table, "branch")
        return from_git(name, address, at, folder, _markers(name, table), where, moves=True)
    if foreign := next((kind for kind in _FOREIGN if kind in table), ""):
        raise Fault(
            f"{name} is taken from {'a path' if foreign in ('path', 'file') else 'an address'}",
            "name a release from the package index; `copy` in the stack brings your own code into the image",
        )
    extras = table.get("extras", [])
    if not isinstance(extras, list) or not all(isinstance(each, str) for each in extras):
        raise Fault(f"the extras of {name} are not a list of names", "write them as a list of texts")
    marker = _markers(name, table)
    bracket = f"[{','.join(extras)}]" if extras else ""
    behind = f" ; {marker}" if marker else ""
    return requirement(f"{name}{bracket}{pep440(_text(table, 'version') or '*')}{behind}", where)


def _markers(name: str, table: dict[str, Any]) -> str:
    """In which environments an entry is wanted, as one marker."""
    markers = [_text(table, "markers")]
    if python := pep440(_text(table, "python") or "*"):
        markers += [_python_marker(part) for part in python.split(",")]
    marker = " and ".join(f"({each})" if " or " in each else each for each in markers if each)
    if marker and not is_marker(marker):
        raise Fault(
            f"the markers of {name} cannot be read: {marker[:120]!r}", "write them as `poetry check` accepts them"
        )
    return marker


def pep440(said: str) -> str:
    """A range of Poetry's in PEP 440's form: ``^1.2`` is ``>=1.2,<2``. :class:`Fault` where it is none."""
    if "||" in said or "|" in said:
        raise Fault(f"{said[:80]!r} is several ranges", "write one range")
    parts = [part for part in re.split(r"\s*,\s*|(?<=[0-9a-z*])\s+(?=[<>=!^~])", said.strip()) if part]
    found = ",".join(filter(None, (_part(re.sub(r"\s+", "", part)) for part in parts)))
    if len(said) > LONGEST or not is_range(found):
        raise Fault(f"{said[:80]!r} is not a range of versions", "write a range such as ^1.26 or >=1.26,<3")
    return found


def _part(part: str) -> str:
    if part == "*":
        return ""
    if match := re.fullmatch(rf"\^({_VERSION})(\S*)", part):
        return f">={match[1]}{match[2]},<{_next(match[1], _leading(match[1]))}"
    if match := re.fullmatch(rf"~({_VERSION})(\S*)", part):
        return f">={match[1]}{match[2]},<{_next(match[1], min(1, match[1].count('.')))}"
    if re.fullmatch(rf"{_VERSION}(\.\*)?\S*", part):
        return f"=={part}"
    return re.sub(r"^=(?!=)", "==", part)


def _leading(version: str) -> int:
    """Which number a caret leaves as it is: the first that is not 0, else the last."""
    numbers = version.split(".")
    return next((place for place, number in enumerate(numbers) if int(number)), len(numbers) - 1)


def _next(version: str, place: int) -> str:
    """The version with the number at a place one higher, and nothing behind it."""
    numbers = [int(number) for number in version.split(".")]
    return ".".join(map(str, [*numbers[:place], numbers[place] + 1]))


def _python_marker(part: str) -> str:
    operator, version = re.fullmatch(r"([<>=!~]+)(.*)", part).groups()  # type: ignore[union-attr]
    return f"python_full_version {operator} '{version}'"


def _text(table: dict[str, Any], key: str) -> str:
    value = table.get(key, "")
    if isinstance(value, str) and value.isprintable():
        return value
    raise Fault(f"{key} is not text on one line", "write it as a text in quotes")


# pyproject.toml's table [project], or Poetry's: what the project is called and which commands it has.

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read_backend(folder: ProjectFolder, path: str) -> BuildBackend | None:
    """What builds the project; None where nothing is said. InputError with all that is wrong there."""
    file = TomlFile(folder, path)
    reader = Reader(file)
    table = reader.table(file.data, "build-system", Position(path, 1, 1))
    where = file.key("build-system", "build-backend")
    module = reader.text(table, "build-backend", where)
    listed = reader.texts(table, "requires", file.header("build-system"))
    reader.problems.raise_as(InputError)
    if not module:
        return None
    requires = []
    for text in listed:
        with suppress(Fault):
            each = requirement(text, where)
            requires += [f"{each.name}{each.specifier}"] if not each.marker else []
    of_history = _OF_HISTORY.search(file.text) is not None
    return BuildBackend(FileWord(module, where), requires, of_history)


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
            reader.wrong(f"{target[:80]!r} is not a function of a module", where, "such as package.module:main")
    reader.problems.raise_as(InputError)
    return ProjectTable(said.get("name"), said.get("description"), scripts)
