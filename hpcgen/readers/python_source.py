"""What a Python file says of itself: whether it is a program, and what it imports. Read as text; nothing is run."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, PythonSource
from hpcgen.readers.folder import ProjectFolder

_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)|from[ \t]+([\w.]+)[ \t]+import\b)", re.M)
_PROGRAM = re.compile(r"^if[ \t]+__name__[ \t]*==[ \t]*[\"']__main__[\"']", re.M)
_PARALLEL = re.compile(
    r"\b(init_process_group|DistributedDataParallel|FullyShardedDataParallel|jax\.distributed\.initialize)\b"
)


def read_python(folder: ProjectFolder, path: str) -> PythonSource:
    """What is seen of a file; InputError where it is no text."""
    text = folder.text(path)
    imports: dict[str, Position] = {}
    for match in _IMPORT.finditer(text):
        for name in (match[1] or match[2]).split(","):
            package = name.strip().partition(".")[0]
            if package:
                imports.setdefault(package, _at(path, text, match.start()))
    program = _PROGRAM.search(text)
    parallel = _PARALLEL.search(text)
    return PythonSource(
        path,
        _at(path, text, program.start()) if program else None,
        imports,
        FileWord(parallel[1], _at(path, text, parallel.start())) if parallel else None,
    )


def _at(path: str, text: str, offset: int) -> Position:
    return Position(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
