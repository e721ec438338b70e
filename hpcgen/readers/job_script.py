"""Job scripts: what they ask of a batch system, and what they start. Read as text; nothing of them is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import JobFile, Launched, Said
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.job_directives import MARKS, read_directives
from hpcgen.readers.launch_lines import Line, launched

_DIRECTIVE = re.compile(r"(#SBATCH|#PBS|#\$)[ \t]+(-.*)")
_ASSIGNED = re.compile(r"(?:export\s+|declare\s+-x\s+)?([A-Za-z_]\w*)=(.*)")
_USED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ENDS = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>", ">&", "<<", "|&", "(", ")")
_OPENING, _CLOSING = {"for", "while", "until", "if", "case", "function", "{"}, {"done", "fi", "esac", "}"}
_INNER = {"do", "then", "else"}
_MOST_LINES, _MOST_ROUNDS = 5000, 12


def read_job(folder: ProjectFolder, path: str) -> JobFile | None:
    """What a script says; None where it is no job script. InputError where it is no text."""
    lines = folder.text(path).split("\n")[:_MOST_LINES]
    marked = [
        (match[1], Said(match[2].rstrip(), Position(path, number, 1)))
        for number, line in enumerate(lines, 1)
        if (match := _DIRECTIVE.match(line))
    ]
    if not marked:
        return None
    mark = marked[0][0]
    facts, other = read_directives(MARKS[mark], [said for each, said in marked if each == mark])
    body = _Body(path)
    for number, line in _logical(lines):
        body.line(number, line)
    return JobFile(
        path, MARKS[mark], marked[0][1].where, facts, other, body.launched, list(body.exported.values()), body.modules
    )


class _Loop(NamedTuple):
    """A loop over plain words: its variable, the words, and how much the script starts before it."""

    name: str
    values: list[str]
    first: int


class _Body:
    """The lines that are commands."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[str, str] = {}
        self.exported: dict[str, Said] = {}
        self.modules: list[Said] = []
        self.launched: list[Launched] = []
        self._open: list[_Loop | None] = []

    def line(self, number: int, line: str) -> None:
        """One line, continued ones joined."""
        where = Position(self.path, number, len(line) - len(line.lstrip()) + 1)
        for words in _commands(line):
            while words and words[0] in (_OPENING | _CLOSING | _INNER):
                if words[0] in _OPENING:
                    self._open.append(self._loop(words))
                elif words[0] in _CLOSING:
                    self._close()
                words = [] if words[0] in ("for", "case", "function") else words[1:]
            if words:
                self._command(words, where)

    def _loop(self, words: list[str]) -> _Loop | None:
        """A loop over plain words; None for all else that has a beginning and an end."""
        values = [self._value(word) for word in words[3:]]
        plain = 0 < len(values) <= _MOST_ROUNDS and all(re.fullmatch(r"[\w.:=/+@%-]+", word) for word in values)
        if words[0] != "for" or words[2:3] != ["in"] or not plain:
            return None
        self.values.pop(words[1], None)
        return _Loop(words[1], values, len(self.launched))

    def _close(self) -> None:
        """The end of a loop: what it starts is started for each of its words."""
        loop = self._open.pop() if self._open else None
        if loop is None:
            return
        body = self.launched[loop.first :]
        pattern = re.compile(rf"\$(?:\{{{loop.name}\}}|{loop.name}\b)")
        if len(body) * len(loop.values) > _MOST_ROUNDS:
            return
        self.launched[loop.first :] = [
            replace(each, words=[value.join(pattern.split(word)) for word in each.words])
            for value in loop.values
            for each in body
        ]

    def _command(self, words: list[str], where: Position) -> None:
        end = next((n for n, word in enumerate(words) if word in _ENDS or re.match(r"\d?>", word)), len(words))
        dropped, words = re.sub(r"(\d) >& (\d)", r"\1>&\2", " ".join(words[end:])), words[:end]
        if match := _ASSIGNED.fullmatch(" ".join(words[:2]) if words[:1] == ["export"] else " ".join(words[:1])):
            value = self._value(match[2])
            if len(words) == (2 if words[0] == "export" else 1):
                self._assigned(match[1], value, words[0] == "export", where)
                return
        if words[:1] in (["module"], ["ml"]):
            names = [word for word in words[1:] if word not in ("load", "add") and not word.startswith("-")]
            names = [name for name in names if name.isprintable()]
            if not {"purge", "unload", "list", "use", "avail", "swap"} & {*words[1:2]}:
                self.modules += [Said(self._value(name), where) for name in names]
            return
        while words and re.match(r"[A-Za-z_]\w*=", words[0]):
            words = words[1:]
        # No stack has words that cannot be printed.
        if words and all(word.isprintable() for word in words):
            filled = [self._value(word) for word in words]
            found = launched(Line(filled, where, dropped, None in self._open))
            self.launched += [found] if found is not None else []

    def _assigned(self, name: str, value: str, exported: bool, where: Position) -> None:
        if "$" not in value and "`" not in value and value.isprintable():
            self.values[name] = value
            if exported:
                self.exported[name] = Said(f"{name}={value}", where)
        else:
            self.values.pop(name, None)

    def _value(self, word: str) -> str:
        """A word with the variables that the script itself gives a plain value."""
        return _USED.sub(lambda match: self.values.get(match[1] or match[2], match[0]), word)[:4096]


def _logical(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that are commands, each with its number; what ends with a backslash goes on."""
    start, text = 0, ""
    for number, line in enumerate(lines, 1):
        if not text and (line.lstrip().startswith("#") or not line.strip()):
            continue
        start = start if text else number
        if line.endswith("\\"):
            text += line[:-1] + " "
            continue
        yield start, text + line
        text = ""
    if text:
        yield start, text


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, split where one ends and the next begins."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        words = list(lexer)
    except ValueError:
        words = line.split()
    current: list[str] = []
    for word in words:
        if word.endswith((";", "&&", "||")) and not word.strip("|&;<>()"):
            if current:
                yield current
            current = []
        else:
            current.append(word)
    if current:
        yield current
