"""Projects in folders of a repository, each with a file of its own that says what it needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from hpcgen.core.errors import Problems
from hpcgen.core.model.project import PackageFile
from hpcgen.core.support.package_names import normal_name
from hpcgen.project.found import OF_PROJECT, Found, project_table

_MEMBER = re.compile(r"(?:[^/]+/){1,3}(?:pyproject\.toml|setup\.cfg|setup\.py)")
_ASIDE = re.compile(
    r"(^|/)(\.|_|tests?/|testing/|docs?/|examples?/|benchmarks?/|third_party/|3rdparty/|external/|vendor/|submodules/)"
)
_MOST = 24


class SubProject(NamedTuple):
    """One project: its file, what that asks for, and its name; empty where the file does not say it."""

    file: str
    packages: PackageFile
    name: str

    @property
    def folder(self) -> str:
        """Where it lies."""
        return self.file.rpartition("/")[0]


def members_of(found: Found) -> list[SubProject]:
    """Those that name packages, one of each folder; what cannot be read is none."""
    order = {name: number for number, name in enumerate(OF_PROJECT)}
    paths = sorted(
        _files_of_members(found),
        key=lambda path: (path.count("/"), path.rpartition("/")[0], order[path.rpartition("/")[2]]),
    )
    members: dict[str, SubProject] = {}
    quiet = found._replace(problems=Problems())
    for path in paths[: _MOST * len(OF_PROJECT)]:
        folder = path.rpartition("/")[0]
        if len(members) < _MOST and not {folder, *map(str, PurePosixPath(folder).parents)} & members.keys():
            packages = quiet.packages(path)
            if packages is not None and packages.requirements:
                table = project_table(found.top, {path.rpartition("/")[2]: path}, quiet.problems)
                members[folder] = SubProject(path, packages, normal_name(table.name.text) if table.name else "")
    return list(members.values())


def likeliest(members: Sequence[SubProject], wanted: Collection[str], programs: Collection[str]) -> SubProject | None:
    """The one with the most of the packages that are wanted; of such one around a program; None where none has any.

    ``programs``: paths of the files that are started.
    """

    def rank(member: SubProject) -> tuple[int, bool, int, str]:
        around = any(program.startswith(f"{member.folder}/") for program in programs)
        return (-_has(member, wanted), not around, len(member.file), member.file)

    return min((each for each in members if _has(each, wanted)), key=rank, default=None)


def _has(member: SubProject, wanted: Collection[str]) -> int:
    return len({each.name for each in member.packages.requirements} & {*wanted})


def with_siblings(member: SubProject, members: Sequence[SubProject]) -> list[SubProject]:
    """The member and the others that it asks for, and those that these do, each once."""
    by_name = {each.name: each for each in members if each.name}
    found = [member]
    for each in found:
        for asked in each.packages.requirements:
            sibling = by_name.get(asked.name)
            if sibling is not None and sibling not in found:
                found.append(sibling)
    return found


def member_roots(found: Found) -> list[str]:
    """The folders in which names of the members' modules begin."""
    there = found.tree.paths()
    roots = set()
    for folder in {path.rpartition("/")[0] for path in _files_of_members(found)}:
        source = f"{folder}/src"
        roots.add(source if any(each.startswith(f"{source}/") for each in there) else folder)
    return sorted(roots)


def _files_of_members(found: Found) -> list[str]:
    return [each.path for each in found.tree.files if _MEMBER.fullmatch(each.path) and not _ASIDE.search(each.path)]
