"""requirements.txt: https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from hpcgen.core.errors import InputError, Position, Problems, did_you_mean
from hpcgen.core.model.project import PackageFile, PackageRequirement
from hpcgen.core.support.wheel_lines import logical_lines
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.pip_text import EXPECTED, Fault, requirement

_HASH = re.compile(r"\s--hash(?:=|\s+)(\S+)")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_HARMLESS = ("--require-hashes", "--prefer-binary", "--only-binary")
"""What hpcgen does anyhow, or asks no more than it: it takes wheels, and every hash that is there is held to."""
_INDEXES = (
    "the packages come from the index that pip is set to on the building machine, or from the site's mirror: "
    "network.mirrors.pip of the site profile"
)
_OTHER = {
    "-i": _INDEXES,
    "--index-url": _INDEXES,
    "--pypi-url": _INDEXES,
    "--extra-index-url": _INDEXES,
    "--no-index": _INDEXES,
    "-f": _INDEXES,
    "--find-links": _INDEXES,
    "--trusted-host": "site_trust brings certificates of the site into the image",
    "-e": "code of your own comes into the image by `copy` in the stack",
    "--editable": "code of your own comes into the image by `copy` in the stack",
    "--pre": "name the pre-release itself: NAME==1.0rc1",
    "--no-binary": "packages are taken as wheels; remove the line",
    "--use-feature": "remove the line",
    "--config-settings": "packages are taken as wheels; remove the option",
    "--global-option": "packages are taken as wheels; remove the option",
}
_KNOWN = ["--requirement", "--constraint", "--hash", *_HARMLESS, *_OTHER]


class _Line(NamedTuple):
    """A line of a file: its place and its text."""

    where: Position
    text: str


def read_requirements(folder: ProjectFolder, path: str) -> PackageFile:
    """What a file in pip's format asks for, with all that it includes.

    Parameters
    ----------
    path: of the file, from the folder.

    Raises
    ------
    InputError: every line that is no requirement, names an address, or is an option that hpcgen has another place for.
    """
    reading = _Reading(folder)
    reading.file(path, None, held=False)
    reading.problems.raise_as(InputError)
    wanted = reading.wanted
    locked = bool(wanted) and all(each.hashes and each.version for each in wanted)
    return PackageFile(
        file=path,
        kind="requirements",
        locked=locked,
        requirements=wanted,
        constraints=reading.held,
        read=dict(sorted(folder.read.items())),
    )


class _Reading:
    """One file and those that it includes, in their order."""

    def __init__(self, folder: ProjectFolder) -> None:
        self.folder = folder
        self.problems = Problems()
        self.wanted: list[PackageRequirement] = []
        self.held: list[PackageRequirement] = []
        self._seen: set[tuple[str, bool]] = set()

    def file(self, path: str, asked: Position | None, held: bool) -> None:
        """Read a file as requirements, or as constraints (``held``); again and again is the same as once."""
        if (path, held) in self._seen:
            return
        self._seen.add((path, held))
        with self.problems.caught():
            text = self.folder.text(path, asked)
            raw = text.split("\n")
            for number, said in logical_lines(text):
                first = raw[number - 1]
                self._line(_Line(Position(path, number, len(first) - len(first.lstrip()) + 1), said), held)

    def _line(self, line: _Line, held: bool) -> None:
        if variable := _VARIABLE.search(line.text):
            self._wrong(line, f"{variable[0]} stands for a variable of whoever runs pip", "write the value itself")
        elif line.text.startswith("-"):
            self._option(line, held)
        else:
            self._requirement(line, held)

    def _option(self, line: _Line, held: bool) -> None:
        name, value = _option_of(line.text)
        if name in ("-r", "--requirement", "-c", "--constraint"):
            if "://" in value or not value:
                self._wrong(line, f"{name} names no file of this folder", "put the file there")
                return
            path = self.folder.beside(line.where.file, value)
            self.file(path, line.where, held or name in ("-c", "--constraint"))
        elif name in _OTHER:
            self._wrong(line, f"{name} is an option of pip that hpcgen does not take from a file", _OTHER[name])
        elif name not in _HARMLESS:
            self._wrong(line, f"{name} is no option that hpcgen knows", did_you_mean(name, _KNOWN))

    def _requirement(self, line: _Line, held: bool) -> None:
        hashes = _HASH.findall(line.text)
        text = _HASH.sub("", line.text).strip()
        wrong = [each for each in hashes if not _SHA256.fullmatch(each)]
        if option := re.search(r"\s(--?[a-z][a-z-]*)", text.split("#")[0]):
            name = option[1]
            self._wrong(line, f"{name} behind a requirement", _OTHER.get(name, "remove the option"))
            return
        for each in wrong if len(wrong) == len(hashes) else ():
            self._wrong(
                line, f"{each[:80]!r} is no sha256", "write --hash=sha256: and 64 digits, as pip hash prints them"
            )
        try:
            found = requirement(text, line.where, [each for each in hashes if each not in wrong])
        except Fault as fault:
            self.problems.add(fault.message, self.folder.at(line.where), EXPECTED, fault.remedy)
            return
        (self.held if held else self.wanted).append(found)

    def _wrong(self, line: _Line, message: str, remedy: str) -> None:
        self.problems.add(message, self.folder.at(line.where), remedy=remedy)


def _option_of(text: str) -> tuple[str, str]:
    """Name and value of an option: ``-r a.txt``, ``-ra.txt``, ``--requirement=a.txt``."""
    if match := re.match(r"(-[a-zA-Z])\s*(.*)", text) if not text.startswith("--") else None:
        return match[1], _unquoted(match[2])
    name, _, value = (
        re.sub(r"\s+", "=", text, count=1).partition("=") if "=" not in text.split()[0] else text.partition("=")
    )
    return name, _unquoted(value)


def _unquoted(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError:
        return ""
    return words[0] if len(words) == 1 else ""
