"""Files of settings for gin-config: the modules that they import. Read as text; nothing is run.

Source: https://github.com/google/gin-config, "Syntax quick reference": import statements and ``include``.
"""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import ImportedName
from hpcgen.readers.folder import ProjectFolder

_IMPORT = re.compile(r"^(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+([\w.]+)", re.M)
_INCLUDE = re.compile(r"^include[ \t]+['\"]([^'\"\n]+)['\"]", re.M)
_OWN = ("__gin__", "__main__")
"""Names that mean no package: gin's own switches, and the program itself."""
_MOST = 20


def read_gin(folder: ProjectFolder, path: str) -> list[ImportedName]:
    """What a file and those that it includes import; a module with its dots, or a name behind one.

    InputError: the file cannot be read.
    """
    found: list[ImportedName] = []
    left, seen = [path], set[str]()
    while left and len(seen) < _MOST:
        file = left.pop(0)
        if file in seen or (file != path and not folder.holds(file)):
            continue
        seen.add(file)
        text = folder.text(file)
        for match in _IMPORT.finditer(text):
            first = match[1] or match[2]
            if first not in _OWN:
                name = f"{match[1]}.{match[2]}" if match[1] else match[2]
                where = Position(file, text.count("\n", 0, match.start()) + 1, 1)
                found += [ImportedName(each, where) for each in dict.fromkeys((first, name))]
        left += _INCLUDE.findall(text)
    return found
