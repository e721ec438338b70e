"""Definition files of Apptainer and Singularity: https://apptainer.org/docs/user/main/definition_files.html."""

from __future__ import annotations

import re
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.support.quoting import ENV_NAME_PATTERN
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.install_lines import Installing, shell_lines, with_values

_LARGEST = 512 * 1024
_HEADER = re.compile(r"^\s*(\w+)\s*:\s*(\S.*?)\s*$")
_EXPORT = re.compile(r"^\s*export\s+(\w+)=(.*?)\s*;?\s*$")
_ARGUMENT = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class _Section(NamedTuple):
    name: str
    line: int
    lines: list[str]

    @property
    def text(self) -> str:
        """Its lines; ``line`` is the number of the first."""
        return "\n".join(self.lines)


def read_definition(folder: ProjectFolder, path: str) -> ContainerFile | None:
    """What the last stage has; None where it is no definition file. InputError where it is no text."""
    headers, sections = _last_stage(path, folder.text(path, most=_LARGEST).split("\n"))
    if "bootstrap" not in headers:
        return None
    values = {
        match[1]: match[2]
        for each in sections
        if each.name == "arguments"
        for line in each.lines
        if (match := re.match(r"\s*(\w+)=(\S*)", line))
    }
    installing, variables = Installing(path), {}
    command: list[str] = []
    where: Position | None = None
    for each in sections:
        text = _ARGUMENT.sub(lambda match: values.get(match[1], match[0]), each.text)
        if each.name == "post":
            installing.shell(text, each.line, {})
        elif each.name == "environment":
            for number, line in enumerate(text.split("\n"), each.line):
                if (match := _EXPORT.match(line)) and re.search(ENV_NAME_PATTERN, match[1]):
                    value = with_values(match[2].strip("\"'"), {})
                    variables[match[1]] = FileWord(f"{match[1]}={value}", Position(path, number, 1))
        elif each.name in ("runscript", "startscript") and not command:
            lines = list(shell_lines(text, each.line))
            command = [word for word in lines[-1].words if word not in ("$@", "$*")] if lines else []
            where = Position(path, lines[-1].line, 1) if lines else None
        elif each.name.startswith("app"):
            installing.leave(f"%{each.name}", Position(path, each.line - 1, 1))
    base = headers.get("from")
    if base is not None:
        image = _ARGUMENT.sub(lambda match: values.get(match[1], match[0]), base.text)
        kind = headers["bootstrap"].text.lower()
        base = FileWord(image if kind in ("docker", "oras", "library", "shub") else "", base.where)
    good = [each for each in variables.values() if each.text.isprintable()]
    said = command if all(each.isprintable() for each in command) else []
    return ContainerFile(path, base, installing.installed(), good, command=said, command_where=where)


def _last_stage(path: str, lines: list[str]) -> tuple[dict[str, FileWord], list[_Section]]:
    """Its headers by their names in lower case, and its sections."""
    headers: dict[str, FileWord] = {}
    sections: list[_Section] = []
    for number, line in enumerate(lines, 1):
        if match := re.match(r"%(\w+)", line):
            sections.append(_Section(match[1].lower(), number + 1, []))
        elif (header := _HEADER.match(line)) and header[1].lower() == "bootstrap":
            headers, sections = {"bootstrap": FileWord(header[2], Position(path, number, 1))}, []
        elif header and not sections:
            headers[header[1].lower()] = FileWord(header[2], Position(path, number, 1))
        elif sections:
            sections[-1].lines.append(line)
    return headers, sections
