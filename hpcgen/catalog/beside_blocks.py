"""What lies beside blocks in collections: hashed wheel lists, lists of what Bazel fetches, text files, and
which packages bring an MPI."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.support.hashing import read_plain

if TYPE_CHECKING:
    from hpcgen.blocks.steps import BazelFiles
    from hpcgen.core.model.mpi_packages import MpiPackageTable
    from hpcgen.core.model.wheel_facts import WheelFacts
    from hpcgen.core.support.wheel_lines import WheelLine

REQUIRES = "requires.json"
"""Beside wheel lists: what their packages require."""
_OTHER_ARCHITECTURES = ("aarch64",)
"""Those that the name of a list has."""


class BesideBlocks:
    """Finds such a file in ``building_blocks/`` of the first collection that has it, and keeps what it read.

    ``folders``: ``building_blocks/`` of the collections, in order of precedence. ``shown``, ``recorded``: how a file is
    called in messages, and in locks.
    """

    def __init__(self, folders: Sequence[Path], shown: Callable[[Path], str], recorded: Callable[[Path], str]) -> None:
        self._folders = folders
        self._shown = shown
        self._recorded = recorded
        self._wheels: dict[str, ListedWheels | None] = {}
        self._texts: dict[str, str] = {}
        self._facts: WheelFacts | None = None
        self._mpi_packages: MpiPackageTable | None = None
        self.read: dict[str, Path] = {}
        """Every such file that was read, by the name that a lock has."""

    def wheels(self, name: str) -> ListedWheels | None:
        """The hashed wheel list ``wheels/<name>.txt``; None if there is none."""
        if name not in self._wheels:
            path = self._find("wheels", f"{name}.txt")
            # Stored once it is whole: another thread may look at any moment.
            self._wheels[name] = read_wheel_list(path, self._shown(path)) if path is not None else None
        return self._wheels[name]

    def wheel_facts(self) -> WheelFacts:
        """What wheels require, of all collections; what an earlier one says of a version counts."""
        if self._facts is None:
            from hpcgen.core.model.wheel_facts import WheelFacts

            found = WheelFacts()
            for path in (folder / "wheels" / REQUIRES for folder in self._folders):
                if path.is_file():
                    found = found.beside(read_wheel_facts(path, self._shown(path)))
            self._facts = found
        return self._facts

    def mpi_packages(self) -> MpiPackageTable:
        """Which packages of distributions and of conda bring an MPI, by ``mpi_packages.yaml``; an earlier collection's
        rows come first."""
        if self._mpi_packages is None:
            from hpcgen.core.config.decoding import convert
            from hpcgen.core.config.yamlfile import load
            from hpcgen.core.model.mpi_packages import MpiPackageTable

            paths = (folder / "mpi_packages.yaml" for folder in self._folders)
            tables = [convert(load(path, self._shown(path)), MpiPackageTable) for path in paths if path.is_file()]
            self._mpi_packages = MpiPackageTable(
                mpi_packages=[row for table in tables for row in table.mpi_packages],
                instead=[row for table in tables for row in table.instead],
                without=[row for table in tables for row in table.without],
            )
        return self._mpi_packages

    def lists_for(self, python: str, architecture: str) -> Iterator[tuple[str, ListedWheels]]:
        """What wheel lists have for a Python (``3.12``) and architecture, by their names; nothing rests on them yet.

        The name of a list says for which Python it is; of a list for several its text does.
        """
        tag = f"cp{python.replace('.', '')}"
        found: dict[str, Path] = {}
        for folder in self._folders:
            for path in (folder / "wheels").glob("*.txt"):
                rest, _, only = path.stem.rpartition("-")
                of_one = re.fullmatch(r"cp3\d+", only) is not None
                name = rest if of_one else path.stem
                other = name.rpartition("-")[2] in _OTHER_ARCHITECTURES
                if (only == tag or not of_one) and other == (architecture in _OTHER_ARCHITECTURES):
                    found.setdefault(path.stem, path)
        for name, path in sorted(found.items()):
            listed = read_wheel_list(path, self._shown(path)).for_python(python)
            if listed is not None:
                yield name, listed

    def bazel_files(self, name: str) -> BazelFiles | None:
        """What Bazel fetches by itself, from ``bazel/<name>.yaml``; None if there is no such list."""
        path = self._find("bazel", f"{name}.yaml")
        if path is None:
            return None
        from hpcgen.blocks.inputs.bazel import read_bazel_files

        return read_bazel_files(path, self._shown(path))

    def text_file(self, name: str) -> str:
        """The text of ``files/<name>``; InputError if no collection has it, or it is no text."""
        if name not in self._texts:
            path = self._find("files", name)
            if path is None:
                raise InputError(
                    f"no collection has building_blocks/files/{name}",
                    remedy="put the file there, or name the collection that has it with --collection",
                )
            self._texts[name] = _text(path)
        return self._texts[name]

    def _find(self, *parts: str) -> Path | None:
        for folder in self._folders:
            path = folder.joinpath(*parts)
            if path.is_file():
                self.read[self._recorded(path)] = path
                return path
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as failure:
        raise InputError("not valid UTF-8", str(path), remedy="save the file as UTF-8") from failure


MAX_BYTES = 16 * 1024 * 1024
_GLIBC = re.compile(r"^# glibc (2\.[0-9]{1,2})(?:: (3\.[0-9. ]+))?$", re.MULTILINE)
_HEAD = "# CPython "
"""How a list begins, before the Pythons that it is for."""


class ListedWheels(NamedTuple):
    """The lines of a wheel list, and the C library that its wheels are made for, empty where it does not say it.

    ``by_python``: of a list for several Pythons what it has for each.
    """

    lines: tuple[str, ...]
    glibc: str = ""
    by_python: Mapping[str, ListedWheels] = {}

    def for_python(self, minor: str) -> ListedWheels | None:
        """What it has for a Python (``3.12``); None if it is for others."""
        return self.by_python.get(minor) if self.by_python else self


def read_wheel_list(path: Path, name: str) -> ListedWheels:
    """A wheel list, each line as hpcgen writes it.

    ``name``: what messages call it. InputError: it cannot be read, or has anything but packages with version and
    hashes: every such line.
    """
    from hpcgen.core.support.wheel_lines import EXPECTED, fault, logical_lines, parse_line

    try:
        data = read_plain(path, MAX_BYTES)
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise InputError("not valid UTF-8", name, remedy="save the file as UTF-8") from failure
    except OSError as failure:
        raise InputError(
            f"the wheel list cannot be read: {failure.strerror}", name, remedy="make it a readable file"
        ) from failure
    if len(data) > MAX_BYTES:
        raise InputError(
            f"this is larger than any wheel list: more than {MAX_BYTES // 2**20} MiB",
            name,
            remedy="check that it is the right file",
        )
    found: list[WheelLine] = []
    problems = Problems()
    for number, said in logical_lines(text):
        line = parse_line(said)
        if line is not None:
            found.append(line)
            continue
        remedy = "network.mirrors.pip of the site profile says where packages come from" if said.startswith("-") else ""
        problems.add(fault(said), Position(name, number, 1), EXPECTED, remedy)
    problems.raise_as(InputError)
    made_for = _GLIBC.findall(text)
    several = text[len(_HEAD) :].partition(",")[0].split() if text.startswith(_HEAD) else []
    if len(several) < 2:
        return ListedWheels(tuple(map(str, found)), made_for[0][0] if made_for else "")
    glibc = {python: version for version, pythons in made_for for python in pythons.split()}
    by_python = {each: _for_one(found, each, glibc.get(each, "")) for each in several}
    every = [str(each._replace(marker="") if each.pythons else each) for each in found]
    return ListedWheels(tuple(every), by_python=by_python)


def _for_one(lines: Sequence[WheelLine], python: str, glibc: str) -> ListedWheels:
    mine = [each for each in lines if not each.pythons or python in each.pythons]
    return ListedWheels(tuple(str(each._replace(marker="") if each.pythons else each) for each in mine), glibc)


def read_wheel_facts(path: Path, name: str) -> WheelFacts:
    """What wheels require, as ``hpcgen wheels requires`` writes it; InputError if it is nothing of the kind."""
    import msgspec

    from hpcgen.core.model.wheel_facts import WheelFacts

    try:
        return msgspec.json.decode(read_plain(path, MAX_BYTES), type=WheelFacts)
    except (OSError, msgspec.MsgspecError) as failure:
        remedy = "delete the file, and have it written again: hpcgen wheels requires"
        raise InputError(f"not what wheels require: {failure}", name, remedy=remedy) from failure
