"""Dockerfiles: https://docs.docker.com/reference/dockerfile/. Read as text; nothing of them is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.support.quoting import ENV_NAME_PATTERN
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.install_lines import Installing, shell_lines, with_values

_LARGEST = 512 * 1024
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")
_PAIR = re.compile(r"([A-Za-z_]\w*)=((?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s\"'\\])*)", re.DOTALL)
_MOST_STAGES = 60


class _Instruction(NamedTuple):
    """One instruction: its name, what stands behind it, with lines of a here-document, and its line."""

    name: str
    text: str
    line: int
    body: str = ""


class _Stage(NamedTuple):
    base: str
    line: int
    instructions: list[_Instruction]
    values: dict[str, str]


def read_dockerfile(folder: ProjectFolder, path: str) -> ContainerFile:
    """What the last stage has, with those that it is made from and copies from; InputError where it is no text."""
    stages, names = _stages(list(_instructions(folder.text(path, most=_LARGEST))))
    reading = _Reading(path)
    if not stages:
        return reading.file(None)
    chain, waiting = [], [len(stages) - 1]
    bases: dict[int, int] = {}
    while waiting:
        number = waiting.pop(0)
        if number in chain:
            continue
        chain.append(number)
        stage = stages[number]
        if (below := _number(stage.base, names, number)) is not None:
            bases[number] = below
            waiting.append(below)
        for each in stage.instructions:
            if each.name == "COPY" and (match := re.search(r"--from=(\S+)", each.text)):
                copied = _number(with_values(match[1], stage.values), names, number)
                waiting += [copied] if copied is not None else []
    kept, last = [len(stages) - 1], len(stages) - 1
    while last in bases:
        last = bases[last]
        kept.insert(0, last)
    for number in sorted(chain):
        reading.stage(stages[number], number in kept)
    root = stages[last]
    return reading.file(FileWord(root.base, Position(path, root.line, 1)) if root.base else None)


def _instructions(text: str) -> Iterator[_Instruction]:
    lines = text.split("\n")
    escape = "`" if re.match(r"#\s*escape\s*=\s*`", lines[0]) else "\\"
    number = 0
    while number < len(lines):
        start = number
        parts: list[str] = []
        while number < len(lines):
            line = lines[number].rstrip("\r ").rstrip("\t")
            number += 1
            plain = line.lstrip()
            if plain.startswith("#") or (parts and not plain):
                # Such lines count for nothing, wherever they stand; their places stay.
                parts += [""] if parts else []
                if not parts:
                    start = number
                continue
            parts.append(line[:-1] if line.endswith(escape) else line)
            if not line.endswith(escape):
                break
        match = re.match(r"\s*([A-Za-z]+)\s+(.*)", "\\\n".join(parts), re.DOTALL)
        if match is None:
            continue
        body: list[str] = []
        for _, mark in _HEREDOC.findall(match[2]) if match[1].upper() in ("RUN", "COPY", "ADD") else ():
            while number < len(lines) and lines[number].strip() != mark:
                body.append(lines[number])
                number += 1
            number += 1
        yield _Instruction(match[1].upper(), match[2], start + 1, "\n".join(body))


def _stages(instructions: list[_Instruction]) -> tuple[list[_Stage], dict[str, int]]:
    """The stages, and their numbers by their names."""
    outer: dict[str, str] = {}
    stages: list[_Stage] = []
    names: dict[str, int] = {}
    for each in instructions:
        if each.name == "FROM" and len(stages) < _MOST_STAGES:
            words = [word for word in with_values(each.text, outer).split() if not word.startswith("--")]
            names |= {word.lower(): len(stages) for word in words[2:3]}
            stages.append(_Stage(words[0] if words else "", each.line, [], {}))
        elif each.name == "ARG" and (not stages or "=" not in each.text):
            for name, value in _pairs(each.text, outer) if not stages else ():
                outer[name] = value
            if stages and each.text.strip() in outer:
                stages[-1].values[each.text.strip()] = outer[each.text.strip()]
        elif stages:
            if each.name in ("ARG", "ENV"):
                stages[-1].values.update(_pairs(each.text, stages[-1].values))
            stages[-1].instructions.append(each)
    return stages, names


def _number(name: str, names: dict[str, int], before: int) -> int | None:
    """The number of an earlier stage."""
    found = int(name) if re.fullmatch(r"[0-9]{1,3}", name) else names.get(name.lower())
    return found if found is not None and found < before else None


def _pairs(text: str, values: dict[str, str]) -> list[tuple[str, str]]:
    """Names and values of ENV and ARG, in both of its forms."""
    text = text.replace("\\\n", " ")
    if not re.match(r"\s*[A-Za-z_]\w*=", text):
        name, _, value = text.strip().partition(" ")
        return [(name, with_values(value.strip(), values))] if re.fullmatch(r"[A-Za-z_]\w*", name) and value else []
    found = []
    for name, value in _PAIR.findall(text):
        plain = re.sub(r"\\(.)", r"\1", value[1:-1] if value[:1] in ("'", '"') and len(value) > 1 else value)
        found.append((name, plain if value.startswith("'") else with_values(plain, values)))
    return found


class _Reading:
    def __init__(self, path: str) -> None:
        self.path = path
        self.installing = Installing(path)
        self.variables: dict[str, FileWord] = {}
        self.folder = ""
        self.copied: list[str] = []
        self.entry: list[str] = []
        self.words: list[str] = []
        self.where: Position | None = None

    def file(self, base: FileWord | None) -> ContainerFile:
        """All that was read."""
        return ContainerFile(
            self.path,
            base,
            self.installing.installed(),
            list(self.variables.values()),
            self.folder,
            self.copied,
            [*self.entry, *self.words],
            self.where,
        )

    def stage(self, stage: _Stage, kept: bool) -> None:
        """A stage; of one that is not the image's own only what it installs. ``kept``: it is part of the image."""
        values: dict[str, str] = {}
        folder = self.folder if kept else ""
        for each in stage.instructions:
            where = Position(self.path, each.line, 1)
            if each.name in ("ARG", "ENV"):
                values.update(_pairs(each.text, values))
            if each.name == "RUN":
                self._run(each, {**stage.values, **values})
            elif each.name in ("ADD", "COPY"):
                self._copy(each, {**stage.values, **values}, folder, kept)
            elif each.name == "WORKDIR":
                folder = _below(folder, with_values(each.text.strip().strip("\"'"), values))
            elif each.name == "ONBUILD":
                self.installing.leave(f"ONBUILD {each.text}", where)
            elif kept:
                self._of_image(each, values, where)
        self.folder = folder if kept else self.folder

    def _of_image(self, each: _Instruction, values: dict[str, str], where: Position) -> None:
        if each.name == "ENV":
            for name, value in _pairs(each.text, values):
                if re.search(ENV_NAME_PATTERN, name) and value.isprintable():
                    self.variables[name] = FileWord(f"{name}={value}", where)
        elif each.name == "ENTRYPOINT":
            self.entry, self.words, self.where = _exec(each.text, values), [], where
        elif each.name == "CMD":
            self.words, self.where = _exec(each.text, values), self.where or where

    def _run(self, each: _Instruction, values: dict[str, str]) -> None:
        text = each.text
        while match := re.match(r"(--\w+=\S+\s*(?:\\\n\s*)*)+", text):
            # Of the options of RUN none says what is installed; lines stay where they are.
            text = "\\\n" * match[0].count("\n") + text[match.end() :]
        if each.body and re.match(_HEREDOC, text):
            self.installing.shell(each.body, each.line + 1, values)
        elif text.lstrip().startswith("[") and (words := _words(text)):
            self.installing.command([with_values(word, values) for word in words], Position(self.path, each.line, 1))
        else:
            self.installing.shell(text, each.line, values)

    def _copy(self, each: _Instruction, values: dict[str, str], folder: str, kept: bool) -> None:
        text = with_values(each.text, values).replace("\\\n", " ")
        where = Position(self.path, each.line, 1)
        if "://" in text and each.name == "ADD":
            self.installing.leave(f"ADD {text}", where)
        words = [word for word in _words(text) or text.split() if not word.startswith("--")]
        if kept and "--from=" not in text and len(words) == 2 and words[0] in (".", "./", "/"):
            self.copied.append(_below(folder, words[1]))


def _below(folder: str, path: str) -> str:
    return (
        path.rstrip("/") or "/" if path.startswith("/") else f"{folder}/{path.removeprefix('.').strip('/')}".rstrip("/")
    )


def _words(text: str) -> list[str]:
    """The words of the JSON form; none where it is another."""
    try:
        words: Any = json.loads(text.replace("\\\n", " "))
    except (ValueError, RecursionError):
        return []
    return words if isinstance(words, list) and all(isinstance(each, str) for each in words) else []


def _exec(text: str, values: dict[str, str]) -> list[str]:
    """The words of a command in one of its two forms; of several in a shell the last."""
    if words := _words(text):
        return words if all(each.isprintable() for each in words) else []
    lines = list(shell_lines(text.replace("\\\n", " ")))
    words = [with_values(word, values) for word in lines[-1].words] if lines else []
    return words if all(each.isprintable() for each in words) else []
