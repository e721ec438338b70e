"""README: how a project's authors install and start it, as its command lines show."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, Readme
from hpcgen.readers.folder import ProjectFolder

NAMES = ("README.md", "README.rst", "README.txt", "README", "readme.md")
_STARTS = re.compile(r"(?:^|[\s`$>&;|])(?:python[\d.]*|torchrun|deepspeed|accelerate[ \t]+launch|ipython)[ \t]+(.*)")
_PROGRAM = re.compile(r"(?:^|\s)(?:\$\{?\w+\}?/|\./)?(\w[\w./-]*\.py|(?<=-m )\w[\w.]*)(?=[\s`\\]|$)")
_INSTALLS = re.compile(r"\bpip3?[ \t]+install[ \t]+(.*)")
_PIN = re.compile(r"(?:^|[\s\"'`])([A-Za-z0-9][A-Za-z0-9._-]*==\d[\w.]*)(?:\+\w+)?(?=[\s\"'`\\,]|$)")
_GROUPS = re.compile(r"(?:^|[\s\"'])(?:[A-Za-z][\w.-]*|\.)\[([\w,. -]+)\]")
_NOT_FOR_RUNS = re.compile(r"(unit)?tests?(ing)?|dev\w*|docs?|lint\w*|tpu|mac\w*|windows")
_LONGEST = 2000
_PAGE = re.compile(r"\]\((?:\./)?([\w][\w./-]*\.(?:md|rst))(?:#[^()]*)?\)")


def read_readme(folder: ProjectFolder, path: str) -> Readme:
    """The programs that its lines start, as they are named there, and the packages that they install.

    InputError: it cannot be read.
    """
    found: dict[re.Pattern[str], list[FileWord]] = {_PROGRAM: [], _PIN: [], _GROUPS: []}
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        for command, word in ((_STARTS, _PROGRAM), (_INSTALLS, _PIN), (_INSTALLS, _GROUPS)):
            if len(line) < _LONGEST and (match := command.search(line)):
                for each in word.finditer(match[1]):
                    where = Position(path, number, match.start(1) + each.start(1) + 1)
                    found[word].append(FileWord(each[1], where))
    groups = [(name.strip(), each.where) for each in found[_GROUPS][:1] for name in each.text.split(",")]
    wanted = [FileWord(name, where) for name, where in groups if name and not _NOT_FOR_RUNS.fullmatch(name)]
    return Readme(found[_PROGRAM], found[_PIN], wanted)


def linked_pages(folder: ProjectFolder, path: str) -> list[str]:
    """The pages of the project that a README leads to, by their paths from the project's folder.

    InputError: it cannot be read.
    """
    lines = [line for line in folder.text(path).split("\n") if len(line) < _LONGEST]
    return list(dict.fromkeys(folder.beside(path, match[1]) for line in lines for match in _PAGE.finditer(line)))
