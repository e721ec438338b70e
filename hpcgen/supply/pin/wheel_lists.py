"""Wheel lists for building blocks: what some requirements need, one file for each Python and architecture."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from packaging.version import Version

from hpcgen.blocks.declared import listed_for
from hpcgen.core.errors import ConflictError, InputError, Problem, Problems
from hpcgen.core.support.wheel_tags import WheelTarget, newest_glibc
from hpcgen.core.support.writing import write_file
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.uv_resolver import Request, Resolved
from hpcgen.supply.pin.wheels import check, resolve

GLIBC = {"3.6": "2.17"}
OTHER_GLIBC = "2.28"
"""The oldest C library that the distributions with a Python have: Ubuntu 18.04 has 2.27, but manylinux has no name
between 2.17 and 2.28 that projects use."""
_AT_A_TIME = 4


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which lists are wanted.

    Parameters
    ----------
    name: of the lists, without architecture and Python: ``jax-0.10.2``.
    requirements: in pip's form; also ranges that hold versions back.
    pythons: versions of CPython, exact where dependencies may hang on it: ``3.12.3``.
    glibc: the C library of the oldest base, where it is newer than usual.
    sdists: ``NAME==X`` of packages to take as source.
    every_python: one list for all Pythons, without compiled parts.
    optional: a Python without a solution is left out, unless it is so for all.
    indexes: as for :func:`hpcgen.supply.pin.wheels.lock_wheels`.
    """

    name: str
    requirements: tuple[str, ...]
    pythons: tuple[str, ...]
    architectures: tuple[str, ...] = ("x86_64",)
    glibc: str = ""
    sdists: tuple[str, ...] = ()
    every_python: bool = False
    optional: bool = False
    indexes: tuple[str, ...] | None = None


class WheelList(msgspec.Struct, frozen=True):
    """One list: the name of its file, what it is for, its packages and its text."""

    file: str
    python: str
    architecture: str
    packages: tuple[Resolved, ...]
    text: str


class Skipped(msgspec.Struct, frozen=True):
    """A Python and architecture for which there is no solution, and why."""

    python: str
    architecture: str
    reason: str


class WheelLists(msgspec.Struct, frozen=True):
    """The lists of a request, and what was left out."""

    lists: tuple[WheelList, ...]
    skipped: tuple[Skipped, ...]


def pythons_of(releases: Iterable[str]) -> tuple[str, ...]:
    """One Python for each minor version among the rows of a release table: the oldest that is exact."""
    by_minor: dict[tuple[int, int], list[Version]] = {}
    for version in map(Version, releases):
        by_minor.setdefault((version.major, version.minor), []).append(version)
    return tuple(
        str(min(versions, key=lambda each: (len(each.release) < 3, each))) for _, versions in sorted(by_minor.items())
    )


def lock_lists(asked: ListRequest, say: Callable[[str], None] = lambda text: None) -> WheelLists:
    """Resolve every list, and write none; ``say`` is told of each that is done.

    Raises
    ------
    ConflictError: there is no solution for a Python that was asked for, or for none at all.
    InputError: a name or a requirement that is none, or a list for every Python that is bound to one.
    FetchError, MissingToolError: as :func:`hpcgen.supply.pin.wheels.lock_wheels`.
    """
    _check(asked)
    targets = [(python, architecture) for architecture in asked.architectures for python in asked.pythons]
    if asked.indexes is None:
        pip_settings()  # once, not by each of the threads that begin at the same time
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        found = []
        for each in pool.map(lambda target: _list_or_skipped(asked, *target), targets):
            found.append(each)
            say(f"{_told(each)} ({len(found)} of {len(targets)})" if len(targets) > 1 else _told(each))
    lists = tuple(each for each in found if isinstance(each, WheelList))
    skipped = tuple(each for each in found if isinstance(each, Skipped))
    if skipped and not (asked.optional and lists):
        # The newest Python is the one for which most people expect a solution.
        shown = skipped if not asked.optional else skipped[-1:]
        raise ConflictError([Problem(each.reason) for each in shown])
    return WheelLists(lists, skipped)


def write_lists(found: WheelLists, into: Path) -> list[Path]:
    """Write the lists into a folder, which is made if it is not there."""
    for each in found.lists:
        write_file(into / each.file, each.text, folders=True)
    return [into / each.file for each in found.lists]


def _check(asked: ListRequest) -> None:
    """Before anything is fetched: what is wrong with the request."""
    problems = Problems()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", asked.name):
        problems.add(f"{asked.name!r} cannot be the name of a list", expected="such as jax-0.10.2")
    for python in asked.pythons:
        for architecture in asked.architectures:
            with problems.caught():
                check(_request(asked, python, architecture))
    if asked.every_python and len(asked.pythons) != 1:
        problems.add(
            "a list for every Python is resolved for one of them, the oldest that it is for",
            expected="--python once with --every-python",
        )
    problems.raise_as(InputError)


def _list_or_skipped(asked: ListRequest, python: str, architecture: str) -> WheelList | Skipped:
    try:
        return _list(asked, python, architecture)
    except ConflictError as error:
        return Skipped(python, architecture, "\n".join(each.message for each in error.problems))


def _told(each: WheelList | Skipped) -> str:
    where = f"CPython {each.python}, {each.architecture}"
    if isinstance(each, Skipped):
        return f"{where}: no solution"
    return f"{where}: {len(each.packages)} package{'' if len(each.packages) == 1 else 's'}"


def _list(asked: ListRequest, python: str, architecture: str) -> WheelList:
    found = resolve(_request(asked, python, architecture))
    if asked.every_python and (bound := _bound_to_one_python(found)):
        raise InputError(f"not for every Python: {', '.join(bound)}", remedy="leave --every-python out")
    minor = ".".join(python.split(".")[:2])
    header = [
        f"# CPython {'any' if asked.every_python else minor}, Linux {architecture}: "
        "every package that pip installs, with its sha256.",
        f"# hpcgen wheels lock {shlex.join(_words(asked, python, architecture))}",
    ]
    if glibc := newest_glibc(each.file for each in found):
        header.append(f"# glibc {glibc}")
    text = "\n".join([*header, *(each.line for each in found)]) + "\n"
    return WheelList(_file(asked, minor, architecture), python, architecture, tuple(found), text)


def _request(asked: ListRequest, python: str, architecture: str) -> Request:
    glibc = asked.glibc or GLIBC.get(".".join(python.split(".")[:2]), OTHER_GLIBC)
    return Request(WheelTarget(python, architecture, glibc), asked.requirements, asked.sdists, indexes=asked.indexes)


def _file(asked: ListRequest, minor: str, architecture: str) -> str:
    """The name by which ``Context.wheels`` finds it."""
    tag = "" if asked.every_python else f"-cp{minor.replace('.', '')}"
    return f"{listed_for(asked.name, architecture)}{tag}.txt"


def _words(asked: ListRequest, python: str, architecture: str) -> list[str]:
    """What writes this list alone again."""
    words = ["--python", python, *(["--every-python"] if asked.every_python else [])]
    words += [] if architecture == "x86_64" else ["--architecture", architecture]
    words += ["--glibc", asked.glibc] if asked.glibc else []
    for name in asked.sdists:
        words += ["--sdist", name]
    return [*words, asked.name, *asked.requirements]


def _bound_to_one_python(found: Sequence[Resolved]) -> list[str]:
    """Wheels that other Pythons cannot install: those with compiled parts and no stable interface."""
    names = [each.file for each in found]
    return [name for name in names if name.endswith(".whl") and not re.search(r"-(py3|py2\.py3|cp\d+-abi3)-", name)]
