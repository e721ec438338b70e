"""apt.txt: packages of the distribution, one on each line, as repo2docker and others take them.

https://repo2docker.readthedocs.io/en/latest/configuration/system/
"""

from __future__ import annotations

import re

from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import ProjectFolder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_:-]{0,127}")


def read_apt(folder: ProjectFolder, path: str, problems: Problems) -> list[FileWord]:
    """The names that a file has, each once.

    ``problems``: is told every word that is no name of a package. InputError: the file cannot be read.
    """
    found: dict[str, FileWord] = {}
    for number, line in enumerate(folder.text(path).split("\n"), 1):
        for match in re.finditer(r"\S+", line.partition("#")[0]):
            word, where = match[0], Position(path, number, match.start() + 1)
            if _NAME.fullmatch(word):
                found.setdefault(word, FileWord(word, where))
            else:
                problems.add(
                    f"{word[:80]!r} is not a package name",
                    folder.at(where),
                    "the names of Debian's or Ubuntu's packages, such as libnuma-dev",
                    _remedy(word),
                )
    return list(found.values())


def _remedy(word: str) -> str:
    if "=" in word and _NAME.fullmatch(word.partition("=")[0]):
        return f"write {word.partition('=')[0]}: `hpcgen lock` pins the version that the image's base has"
    if word.startswith("-"):
        return "remove the option; packages are installed without those that they only recommend"
    return "remove it"
