"""``slurm.conf`` and its lists of hosts → its lines as keys and values, with their places. Source: slurm.conf(5)."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator

import msgspec

from hpcgen.core.errors import InputError, Position, Problem
from hpcgen.readers.folder import MAX_BYTES, ProjectFolder

MOST_LINES, MOST_KEYS = 100_000, 200
_DEEPEST = 8
_OF_PARTS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
_PAIR = re.compile(r'(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9_]{0,63})\s{0,99}[+-]?=\s{0,99}("[^"]*"|[^\s"]*)')
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)


class SlurmLine(msgspec.Struct, frozen=True):
    """A line: its first key, and all that it says by lower-case key."""

    key: str
    said: dict[str, str]
    where: Position

    @property
    def how(self) -> str:
        """Its place, for people."""
        return f"{self.where.file}:{self.where.line}"


class Conf(msgspec.Struct):
    """All lines in order; ``left_out``: files that are named and were not read, with the reason."""

    lines: list[SlurmLine] = []
    left_out: list[str] = []

    @property
    def whole(self) -> dict[str, str]:
        """What the lines say of the whole cluster."""
        return {line.key: line.said[line.key] for line in self.lines if line.key not in _OF_PARTS}


def read_conf(folder: ProjectFolder, file: str) -> Conf:
    """Read a file and those that it includes, as far as they lie in its folder.

    InputError: with every line that is none.
    """
    conf, problems = Conf(), list[Problem]()
    _read(folder, file, None, conf, problems, 0)
    if problems:
        raise InputError(problems)
    return conf


def _read(
    folder: ProjectFolder, file: str, asked: Position | None, conf: Conf, problems: list[Problem], depth: int
) -> None:
    text = folder.text(file, asked, MAX_BYTES)
    for number, line in _logical(text):
        where = Position(folder.shown(file), number, 1)
        if len(conf.lines) >= MOST_LINES:
            raise InputError(f"more than {MOST_LINES} lines", where, remedy="check that it is the right file")
        if match := _INCLUDE.fullmatch(line):
            _include(folder, file, match[1], Position(file, number, 1), conf, problems, depth)
        elif (said := _pairs(line)) is None:
            problems.append(
                Problem(
                    f"{line[:80]!r} is not a line of slurm.conf",
                    where,
                    f"KEY=VALUE pairs, separated by blanks, at most {MOST_KEYS}",
                    "quote a value with blanks, or write the key before it",
                )
            )
        else:
            conf.lines.append(SlurmLine(next(iter(said)), said, where))


def _include(
    folder: ProjectFolder,
    file: str,
    path: str,
    asked: Position,
    conf: Conf,
    problems: list[Problem],
    depth: int,
) -> None:
    cluster = next((line.said["clustername"] for line in conf.lines if line.key == "clustername"), "%c")
    path = path.replace("%c", cluster)
    shown = f"{folder.shown(asked.file)}:{asked.line} includes {path}"
    target = posixpath.normpath(path if path.startswith("/") else folder.beside(file, path))
    if depth >= _DEEPEST:
        raise InputError(
            "files include each other too deeply",
            folder.at(asked),
            f"at most {_DEEPEST} levels",
            remedy="look for a file that includes itself",
        )
    if not folder.holds(target):
        conf.left_out.append(f"{shown}, which is outside the folder of {folder.shown(file)} and was skipped")
        return
    _read(folder, target, asked, conf, problems, depth + 1)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those that a backslash continues put together, with their first number."""
    begun, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(?<!\\)#.*", "", raw).replace("\\#", "#").rstrip()
        first = first if begun else number
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        if whole := (begun + line).strip():
            yield first, whole
        begun = ""
    if begun.strip():
        yield first, begun.strip()


def _pairs(line: str) -> dict[str, str] | None:
    said: dict[str, str] = {}
    end = 0
    for match in _PAIR.finditer(line):
        if line[end : match.start()].strip():
            return None
        said.setdefault(match[1].lower(), match[2].strip('"'))
        end = match.end()
        if len(said) > MOST_KEYS:
            return None
    return said if said and not line[end:].strip() else None


# Lists of nodes as Slurm writes them: ``c[001-100,200],login1``. Source: slurm.conf(5), NodeName.

MOST_NAMES = 1_000_000
"""In all lists of a file together; the largest clusters have some ten thousand nodes, each in a few partitions."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"(\[[^\[\]]*\])")


class HostListError(ValueError):
    """A list of nodes that cannot be understood."""


class TooManyNamesError(Exception):
    """The lists of a file stand for more than ``MOST_NAMES`` names together."""


class HostLists:
    """The lists of one file, which may not stand for too many names together; a list that is met again counts once."""

    def __init__(self) -> None:
        self._left = MOST_NAMES
        self._known: dict[str, list[str]] = {}

    def names(self, text: str) -> list[str]:
        """All names of a list, in order.

        HostListError: brackets that do not match, or what is no range.  TooManyNamesError.
        """
        if text not in self._known:
            self._known[text] = self._names(text)
        return self._known[text]

    def take(self, count: int) -> None:
        """Count names that are put together otherwise; TooManyNamesError where they are too many."""
        self._left -= count
        if self._left < 0:
            raise TooManyNamesError

    def _names(self, text: str) -> list[str]:
        outside = _BRACKET.sub("", text)
        if "[" in outside or "]" in outside:
            raise HostListError("brackets that do not match" if "]" in outside else "a bracket that is not closed")
        found: dict[str, None] = {}
        for part in map(str.strip, _PART.findall(text)):
            choices = [self._numbers(piece) if piece.startswith("[") else [piece] for piece in _BRACKET.split(part)]
            size = 1
            for choice in choices:
                size *= len(choice)
            self.take(size)
            found.update(dict.fromkeys("".join(words) for words in itertools.product(*choices) if part))
        return list(found)

    def _numbers(self, bracket: str) -> list[str]:
        found: list[str] = []
        for part in bracket[1:-1].split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None:
                raise HostListError(f"{part.strip()[:40]!r} is not a range of numbers")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise HostListError(f"the range {part.strip()} ends before it begins")
            self.take(last - first + 1)
            found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
        return found
