"""devcontainer.json: https://containers.dev/implementors/json_reference/."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.support.quoting import ENV_NAME_PATTERN
from hpcgen.readers.dockerfile import read_dockerfile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.install_lines import Installing

_LARGEST = 256 * 1024
_COMMENT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])", re.DOTALL)
_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")


class _Build(msgspec.Struct):
    dockerfile: str | None = None


class _Said(msgspec.Struct):
    """Of what the format has, what is used here."""

    image: str | None = None
    build: _Build | None = None
    dockerFile: str | None = None
    containerEnv: dict[str, Any] = {}
    features: dict[str, Any] = {}
    onCreateCommand: Any = None
    updateContentCommand: Any = None
    postCreateCommand: Any = None


def read_devcontainer(folder: ProjectFolder, path: str) -> ContainerFile | None:
    """What a container for development has; None where the file is not what it should be."""
    text = folder.text(path, most=_LARGEST)
    try:
        said = msgspec.json.decode(_COMMENT.sub(_plain, text).encode(), type=_Said)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    named = said.build.dockerfile if said.build is not None and said.build.dockerfile else said.dockerFile
    if named and folder.holds(inner := folder.beside(path, named)):
        below = read_dockerfile(folder, inner)
    else:
        below = ContainerFile(path, FileWord(said.image, _at(path, text, "image")) if said.image else None)
    installing = Installing(path)
    for name in said.features:
        installing.leave(f"the feature {name}", _at(path, text, name))
    for name in _COMMANDS:
        for line in _lines(getattr(said, name)):
            where = _at(path, text, name)
            installing.shell(line, where.line, {})
    installed, more = below.installed, installing.installed()
    variables = [
        FileWord(f"{name}={value}", _at(path, text, name))
        for name, value in said.containerEnv.items()
        if isinstance(value, str) and value.isprintable() and re.search(ENV_NAME_PATTERN, name)
    ]
    both = {
        field: [*getattr(installed, field), *getattr(more, field)] for field in ("python", "conda", "files", "left")
    }
    if more.manager in ("", installed.manager) or not installed.manager:
        both["system"] = [*installed.system, *more.system]
    merged = msgspec.structs.replace(installed, manager=installed.manager or more.manager, **both)
    return msgspec.structs.replace(below, installed=merged, variables=[*below.variables, *variables])


def _plain(match: re.Match[str]) -> str:
    """A text as it is; comments and commas before an end are no JSON."""
    return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n")


def _lines(value: Any) -> list[str]:
    """A command in one of its three forms."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [" ".join(value)]
    return [line for each in value.values() for line in _lines(each)][:20] if isinstance(value, dict) else []


def _at(path: str, text: str, name: str) -> Position:
    offset = max(0, text.find(f'"{name}"'))
    return Position(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
