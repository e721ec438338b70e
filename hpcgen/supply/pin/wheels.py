"""Hashed wheel lists: everything that some packages need, for a Python and a C library that are not this machine's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec
from packaging.version import Version

from hpcgen.blocks.declared import listed_for
from hpcgen.core.errors import ConflictError, InputError, Problem, Problems
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_tags import WheelTarget, minor_of, newest_glibc
from hpcgen.core.support.writing import write_file
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin import uv_resolver
from hpcgen.supply.pin.uv_resolver import Request, Resolved


def lock_wheels(
    requirements: Sequence[str],
    python: str,
    architecture: str,
    glibc: str,
    sdists: Sequence[str] = (),
    constraints: Sequence[str] = (),
    indexes: Sequence[str] | None = None,
    provided: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Requirement lines with one hash each, complete with every dependency, sorted by name.

    The hash is that of the file which pip would install there. uv chooses the versions.

    requirements: in pip's form, without addresses and options.
    python: the version of CPython, exact if possible: dependencies may hang on it.
    glibc: the C library's version, such as ``2.36``.
    sdists: ``name==version`` of packages to take as source.
    constraints: lines of lists that go into the same environment, with hashes or without.
    indexes: as for :func:`hpcgen.supply.net.package_index.find_files`.
    provided: ``name==version`` of packages that come another way, each with what it requires of the others.
    ConflictError: there is no solution; the resolver's own last words say why.
    FetchError: an index could not be asked, or lacks a source package.
    InputError: a requirement that is none.
    MissingToolError: hpcgen was installed without the extra ``lock``, or there is no pip.
    """
    found = lock_packages(requirements, python, architecture, glibc, sdists, constraints, indexes, provided)
    return [each.line for each in found]


def lock_packages(
    requirements: Sequence[str],
    python: str,
    architecture: str,
    glibc: str,
    sdists: Sequence[str] = (),
    constraints: Sequence[str] = (),
    indexes: Sequence[str] | None = None,
    provided: Mapping[str, Sequence[str]] | None = None,
    *,
    sources: Literal["", "pure", "any"] = "",
) -> list[Resolved]:
    """The same as records; ``sources``: which packages are taken as source, as in :class:`Request`."""
    held = [
        line.split(" --hash", 1)[0].strip()
        for line in constraints
        if line.strip() and not line.lstrip().startswith("#")
    ]
    request = Request(
        WheelTarget(python, architecture, glibc),
        tuple(requirements),
        tuple(sdists),
        tuple(dict.fromkeys(held)),
        None if indexes is None else tuple(indexes),
        tuple((line, tuple(needs)) for line, needs in (provided or {}).items()),
        sources=sources,
    )
    hashes = _held_hashes(constraints)
    return [
        msgspec.structs.replace(each, sha256=hashes.get((each.name, each.version), each.sha256))
        for each in resolve(request)
    ]


def resolve(request: Request) -> list[Resolved]:
    """The same as records, without regard to the constraints' hashes."""
    check(request)
    return [each for _, each in sorted({each.name: each for each in uv_resolver.resolve(request)}.items())]


def check(request: Request) -> None:
    """Requirements, not options or addresses, and a target that makes sense; InputError otherwise."""
    from packaging.requirements import InvalidRequirement, Requirement

    problems = Problems()
    for line in (*request.requirements, *request.sdists, *request.constraints):
        try:
            if Requirement(line).url is not None or not line.isprintable():
                raise InvalidRequirement(line)
        except InvalidRequirement:
            problems.add(f"{line!r} is not a requirement", expected="such as numpy or h5py==3.11.0")
    target = request.target
    for value, pattern, example in (
        (target.python, r"3\.\d{1,2}(\.\d{1,2})?", "3.11.2"),
        (target.glibc, r"2\.\d{1,2}", "2.36"),
        (target.architecture, "|".join(uv_resolver.ARCHITECTURES), "x86_64"),
    ):
        if not re.fullmatch(pattern, value):
            problems.add(f"wheels cannot be chosen for {value!r}", expected=f"such as {example}")
    problems.raise_as(InputError)


def _held_hashes(constraints: Sequence[str]) -> dict[tuple[str, str], str]:
    """sha256 of the constraints that have one: the same environment takes the same file of a version."""
    from hpcgen.supply.net.package_index import pinned

    hashed = pinned(line for line in constraints if "--hash" in line)
    return {(normal_name(pin.name), pin.version): pin.hashes[0] for pin in hashed if len(pin.hashes) == 1}


# Wheel lists for building blocks: what some requirements need, one file for each Python and architecture.

GLIBC = {"3.6": "2.17"}
OTHER_GLIBC = "2.28"
"""The oldest C library that the distributions with a Python have: Ubuntu 18.04 has 2.27, but manylinux has no name
between 2.17 and 2.28 that projects use."""
_AT_A_TIME = 4


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which lists are wanted.

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
            "a list for every Python is resolved for the oldest one only",
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
    minor = minor_of(python)
    options = ["--python", python, *(["--every-python"] if asked.every_python else [])]
    header = list_head(asked, "any" if asked.every_python else minor, options, architecture)
    if glibc := newest_glibc(each.file for each in found):
        header.append(f"# glibc {glibc}")
    text = "\n".join([*header, *(each.line for each in found)]) + "\n"
    return WheelList(_file(asked, minor, architecture), python, architecture, tuple(found), text)


def _request(asked: ListRequest, python: str, architecture: str) -> Request:
    glibc = asked.glibc or GLIBC.get(minor_of(python), OTHER_GLIBC)
    return Request(WheelTarget(python, architecture, glibc), asked.requirements, asked.sdists, indexes=asked.indexes)


def _file(asked: ListRequest, minor: str, architecture: str) -> str:
    """The name by which ``Context.wheels`` finds it."""
    tag = "" if asked.every_python else f"-cp{minor.replace('.', '')}"
    return f"{listed_for(asked.name, architecture)}{tag}.txt"


def list_head(asked: ListRequest, pythons: str, options: Sequence[str], architecture: str) -> list[str]:
    """The first lines of a list: what it is for, and the command that writes it alone again.

    ``pythons``: those that it is for, as it says them. ``options``: of the command, those that say for which Pythons.
    """
    words = [*options, *([] if architecture == "x86_64" else ["--architecture", architecture])]
    words += ["--glibc", asked.glibc] if asked.glibc else []
    for name in asked.sdists:
        words += ["--sdist", name]
    return [
        f"# CPython {pythons}, Linux {architecture}: every package that pip installs, with its sha256.",
        f"# hpcgen wheels lock {shlex.join([*words, asked.name, *asked.requirements])}",
    ]


def _bound_to_one_python(found: Sequence[Resolved]) -> list[str]:
    """Wheels that other Pythons cannot install: those with compiled parts and no stable interface."""
    names = [each.file for each in found]
    return [name for name in names if name.endswith(".whl") and not re.search(r"-(py3|py2\.py3|cp\d+-abi3)-", name)]
