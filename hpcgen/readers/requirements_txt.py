"""requirements.txt: https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

from __future__ import annotations

import contextlib
import importlib
import re
import shlex
import urllib.parse
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.core.errors import Position, Problems, did_you_mean
from hpcgen.core.model.project import FileNote, GitRequirement, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_lines import logical_lines
from hpcgen.readers.folder import PartlyReadError, ProjectFolder
from hpcgen.readers.pip_text import EXPECTED, Fault, git_requirement, is_git, refused_name, requirement
from hpcgen.readers.pyproject import read_pyproject

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
    "--pre": "name the pre-release itself: NAME==1.0rc1",
    "--no-binary": "packages are taken as wheels; remove the line",
    "--use-feature": "remove the line",
    "--config-settings": "packages are taken as wheels; remove the option",
    "--global-option": "packages are taken as wheels; remove the option",
}
_EDITABLE = ("-e", "--editable")
_OF_INDEXES = ("-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--trusted-host")
_ADDRESSED = re.compile(r"[./~]|[A-Za-z0-9._\[\]-]+\s*@|(git|hg|svn|bzr)\+|[a-z]+://")
"""What says by itself that it is no name of a folder."""
_SAYS_NEEDS = ("pyproject.toml", "setup.cfg", "setup.py")
"""Files that say what a project needs, in the order in which they are asked."""
_KNOWN = ["--requirement", "--constraint", "--hash", *_EDITABLE, *_HARMLESS, *_OTHER]
_OWN = re.compile(r"(\.(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?)(?:\[([A-Za-z0-9._, -]*)\])?")
"""The project itself, or a part of it: ``.``, ``./package``, with extras."""


class _Line(NamedTuple):
    """A line of a file: its place and its text."""

    where: Position
    text: str


def read_requirements(folder: ProjectFolder, path: str) -> PackageFile:
    """What a file in pip's format asks for, with all that it includes.

    ``path``: of the file, from the folder. PartlyReadError: every line that is no requirement, names an address without
    a commit, or is an option that hpcgen has another place for; with what the other lines ask for.
    """
    reading = _Reading(folder)
    reading.file(path, None, held=False)
    wanted = reading.wanted
    indexed = [each for each in wanted if not isinstance(each, GitRequirement)]
    locked = bool(indexed) and all(each.hashes and each.version for each in indexed)
    found = PackageFile(
        file=path,
        kind="requirements",
        locked=locked,
        requirements=wanted,
        constraints=reading.held,
        notes=reading.notes,
        refused=reading.refused,
        read=dict(sorted(folder.read.items())),
    )
    if reading.problems:
        raise PartlyReadError(reading.problems, found)
    return found


def read_listed(folder: ProjectFolder, path: str, listed: Sequence[tuple[Position, str]]) -> PackageFile:
    """The same of lines that stand in a file of another kind, each with its place (``pip:`` of environment.yml).

    PartlyReadError: as :func:`read_requirements`.
    """
    reading = _Reading(folder)
    for where, text in listed:
        reading.line(_Line(where, text.strip()), held=False)
    found = PackageFile(
        file=path,
        kind="requirements",
        requirements=reading.wanted,
        constraints=reading.held,
        notes=reading.notes,
        refused=reading.refused,
    )
    if reading.problems:
        raise PartlyReadError(reading.problems, found)
    return found


class _Reading:
    """One file and those that it includes, in their order."""

    def __init__(self, folder: ProjectFolder) -> None:
        self.folder = folder
        self.problems = Problems()
        self.wanted: list[PackageRequirement] = []
        self.held: list[PackageRequirement] = []
        self.notes: list[FileNote] = []
        self.refused: list[FileNote] = []
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
                self.line(_Line(Position(path, number, len(first) - len(first.lstrip()) + 1), said), held)

    def line(self, line: _Line, held: bool) -> None:
        """One line: a requirement, or an option."""
        if variable := _VARIABLE.search(line.text):
            self._wrong(line, f"{variable[0]} is a variable of the user who runs pip", "write the value itself")
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
        elif name in _EDITABLE:
            what = re.sub(r"^(-e|--editable)[\s=]*", "", line.text)
            number = len(self.wanted)
            self._requirement(line._replace(text=what if _ADDRESSED.match(what) else f"./{what}"), held)
            added = [replace(each, editable=True) for each in self.wanted[number:] if isinstance(each, GitRequirement)]
            self.wanted[number:] = added or self.wanted[number:]
        elif name in _OF_INDEXES and (index := known_index(value)):
            self.notes.append(FileNote(text=f"{name} is not needed: that index is {index}", where=line.where))
        elif name in _OTHER:
            self._wrong(line, f"{name} is an option of pip that hpcgen does not take from a file", _OTHER[name])
        elif name not in _HARMLESS:
            self._wrong(line, f"{name} is not an option that hpcgen knows", did_you_mean(name, _KNOWN))

    def _requirement(self, line: _Line, held: bool) -> None:
        own = _OWN.fullmatch(line.text.partition(" #")[0].strip())
        if own and self._own_project(line, own[1].rstrip("/"), own[2] or ""):
            return
        hashes = _HASH.findall(line.text)
        text = _HASH.sub("", line.text).strip()
        wrong = [each for each in hashes if not _SHA256.fullmatch(each)]
        if option := re.search(r"\s(--?[a-z][a-z-]*)", text.split("#")[0]):
            name = option[1]
            self._wrong(line, f"{name} behind a requirement", _OTHER.get(name, "remove the option"))
            self.refused.append(FileNote(text=refused_name(text.partition(" -")[0]), where=line.where))
            return
        for each in wrong if len(wrong) == len(hashes) else ():
            self._wrong(
                line, f"{each[:80]!r} is not a sha256", "write --hash=sha256: and 64 digits, as pip hash prints them"
            )
        try:
            accepted = [each for each in hashes if each not in wrong]
            found = git_requirement(text, line.where) if is_git(text) else requirement(text, line.where, accepted)
        except Fault as fault:
            self.problems.add(fault.message, self.folder.at(line.where), EXPECTED, fault.remedy)
            self.refused.append(FileNote(text=refused_name(text), where=line.where))
            return
        (self.held if held else self.wanted).append(found)

    def _own_project(self, line: _Line, path: str, extras: str) -> bool:
        """A line for the project itself: what its own files ask for counts; its code comes by ``copy``.

        Returns whether the path is that of a project in the folder.
        """
        places = [self.folder.beside(line.where.file, f"{path}/{name}") for name in _SAYS_NEEDS]
        known = [place for place in places if self.folder.holds(place)]
        if not known and path != ".":
            return False
        text = f"{path} is the project itself: `copy` in the stack brings its code, which is not installed"
        self.notes.append(FileNote(text=text + ("" if known else "; no file says what it needs"), where=line.where))
        with self.problems.caught():
            for place in known:
                if place in self.folder.read or (found := self._needs(place, known)) is None:
                    continue
                asked = [normal_name(each.strip()) for each in extras.split(",")]
                self.wanted += [*found.requirements, *(one for name in asked for one in found.groups.get(name, []))]
                break
        return True

    def _needs(self, place: str, known: list[str]) -> PackageFile | None:
        """What a file says that the project needs; None where it leaves that to the next one."""
        from hpcgen.readers.setup_cfg import read_setup_cfg
        from hpcgen.readers.setup_py import read_setup_py

        readers = {"pyproject.toml": read_pyproject, "setup.cfg": read_setup_cfg, "setup.py": read_setup_py}
        try:
            found = readers[place.rpartition("/")[2]](self.folder, place)
        except PartlyReadError as error:
            if place == known[-1] or error.file.requirements:
                raise
            return None
        return found if found.requirements or place == known[-1] else None

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


_HOSTS = (
    (r"download(-r2)?\.pytorch\.org", "PyTorch's own: hpcgen chooses the build for the site's GPUs"),
    (r"storage\.googleapis\.com/jax-releases", "JAX's own: hpcgen chooses the build for the site's GPUs"),
    (
        r"pypi\.(ngc\.)?nvidia\.com|developer\.download\.nvidia\.com",
        "NVIDIA's own: its packages are taken from the default index",
    ),
)
"""Host, for one with the first folder, and why the address decides nothing."""


def known_index(address: str) -> str:
    """Which public index an address names and why hpcgen does not need it; empty for another.

    ``address``: of an index or a page of links; for ``--trusted-host`` a host alone.
    """
    try:
        parts = urllib.parse.urlsplit(address if "://" in address else f"https://{address}")
        host, path = (parts.hostname or "").lower(), parts.path
    except ValueError:
        return ""
    if host and host in _default_hosts():
        return "the default index, which pip uses anyhow"
    place = f"{host}/{path.strip('/').partition('/')[0]}"
    return next((why for pattern, why in _HOSTS if re.fullmatch(pattern, host) or re.fullmatch(pattern, place)), "")


def _default_hosts() -> tuple[str, ...]:
    """Hosts of pip's default index and of its files, as pip itself has them; none where there is no pip.

    Before 2018 the index was a host of python.org's, of the same name.
    """
    with contextlib.suppress(ImportError, AttributeError):
        index = importlib.import_module("pip._internal.models.index").PyPI
        host = str(index.netloc)
        return (host, str(index.file_storage_domain), f"{host.partition('.')[0]}.python.org")
    return ()
