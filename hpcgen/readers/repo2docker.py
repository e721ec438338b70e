"""What repo2docker reads beside lists of packages: https://repo2docker.readthedocs.io/en/latest/configuration/."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import ContainerFile, Installed
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.install_lines import Installing

FOLDERS = ("binder/", ".binder/", "")
"""Where they lie: of these only the first that there is counts."""
_RUNTIME = re.compile(r"\s*(python|r)-(\d+(?:\.\d+){0,2})")


def read_binder(folder: ProjectFolder, below: str) -> ContainerFile | None:
    """What the files in one folder say; None where there are none. InputError where one is no text."""
    # In the project's own folder that file is read without this.
    wanted = ("postBuild", "install.R", "runtime.txt", *(["apt.txt"] if below else []))
    names = [name for name in wanted if folder.holds(below + name)]
    if not names:
        return None
    installing = Installing(below + names[0])
    base: FileWord | None = None
    for name in names:
        path = below + name
        text = folder.text(path)
        installing.file = path
        if name == "postBuild":
            installing.shell(text, 1, {})
        elif name == "apt.txt":
            installing.shell("\n".join(f"apt-get install {line}" for line in text.split("\n")), 1, {})
        elif name == "install.R":
            for number, line in enumerate(text.split("\n"), 1):
                installing.r_code(line.partition("#")[0], Position(path, number, 1))
        elif match := _RUNTIME.match(text):
            image = f"python:{match[2]}" if match[1] == "python" else f"r-base:{match[2]}"
            base = FileWord(image, Position(path, 1, 1))
    installed = installing.installed()
    return ContainerFile(below + names[0], base, installed) if base or installed != Installed() else None
