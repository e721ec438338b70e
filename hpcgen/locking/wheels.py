"""Hashed wheel lists: everything that some packages need, for a Python and a C library that are not this machine's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""Older names of the platforms of PEP 600: https://peps.python.org/pep-0600/#legacy-manylinux-tags"""
_OLDEST = {"x86_64": 5}
_OLDEST_OTHER = 17


class Target(msgspec.Struct, frozen=True):
    """What the wheels must run on: CPython ``python`` (X.Y or X.Y.Z), with a glibc such as ``2.36``."""

    python: str
    architecture: str
    glibc: str

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version of Python."""
        major, minor = self.python.split(".")[:2]
        return int(major), int(minor)

    @property
    def newest(self) -> int:
        """The minor version of glibc 2."""
        return int(self.glibc.split(".")[1])


class Request(msgspec.Struct, frozen=True):
    """What is to be resolved.

    Parameters
    ----------
    sdists: ``name==version`` of packages that are taken as source; what they need must be asked for.
    constraints: ``name==version`` of packages that are there already, if they are needed.
    indexes: addresses of simple indexes, instead of those of pip's settings.
    """

    target: Target
    requirements: tuple[str, ...]
    sdists: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    indexes: tuple[str, ...] | None = None


class Resolved(msgspec.Struct, frozen=True):
    """One package: the normalised name, the version, and the file that would be installed."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def line(self) -> str:
        """The requirement line."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def lock_wheels(
    requirements: Sequence[str],
    python: str,
    architecture: str,
    glibc: str,
    sdists: Sequence[str] = (),
    constraints: Sequence[str] = (),
    indexes: Sequence[str] | None = None,
) -> list[str]:
    """Requirement lines with one hash each, complete with every dependency, sorted by name.

    The hash is that of the file which pip would install there. uv resolves where it is installed and knows the
    Python; pip otherwise.

    Parameters
    ----------
    requirements: in pip's form, without addresses and options.
    python: the version of CPython, exact if possible: dependencies may hang on it.
    glibc: the C library's version, such as ``2.36``.
    sdists: ``name==version`` of packages to take as source.
    constraints: lines of lists that go into the same environment, with hashes or without.
    indexes: as for :func:`hpcgen.net.package_index.find_files`.

    Raises
    ------
    ConflictError: there is no solution; the resolver's own last words say why.
    FetchError: an index could not be asked, or lacks a source package.
    InputError: a requirement that is none.
    MissingToolError: there is neither pip nor uv.
    """
    held = [_without_hashes(line) for line in constraints if line.strip() and not line.lstrip().startswith("#")]
    request = Request(
        Target(python, architecture, glibc),
        tuple(requirements),
        tuple(sdists),
        tuple(dict.fromkeys(held)),
        None if indexes is None else tuple(indexes),
    )
    hashes = _held_hashes(constraints)
    return [
        msgspec.structs.replace(each, sha256=hashes.get((each.name, each.version), each.sha256)).line
        for each in resolve(request)
    ]


def resolve(request: Request, with_uv: bool = True) -> list[Resolved]:
    """The same as records, without regard to the constraints' hashes.

    Parameters
    ----------
    with_uv: use uv if it is installed.
    """
    from hpcgen.locking import pip_resolver, uv_resolver

    check(request)
    ask = uv_resolver.resolve if with_uv and uv_resolver.suits(request) else pip_resolver.resolve
    found = ask(request)
    return [each for _, each in sorted({each.name: each for each in found}.items())]


def check(request: Request) -> None:
    """Requirements, not options or addresses, and a target that makes sense; InputError otherwise."""
    from packaging.requirements import InvalidRequirement, Requirement

    from hpcgen.errors import InputError, Problem

    problems = []
    for line in (*request.requirements, *request.sdists, *request.constraints):
        try:
            if Requirement(line).url is not None or not line.isprintable():
                raise InvalidRequirement(line)
        except InvalidRequirement:
            problems.append(Problem(f"{line!r} is no requirement", expected="such as numpy or h5py==3.11.0"))
    target = request.target
    for value, pattern, example in (
        (target.python, r"3\.\d{1,2}(\.\d{1,2})?", "3.11.2"),
        (target.glibc, r"2\.\d{1,2}", "2.36"),
        (target.architecture, r"[a-z0-9_]{1,16}", "x86_64"),
    ):
        if not re.fullmatch(pattern, value):
            problems.append(Problem(f"wheels cannot be chosen for {value!r}", expected=f"such as {example}"))
    if problems:
        raise InputError(problems)


def platforms(target: Target) -> list[str]:
    """Names of the platforms whose wheels run there, the best first."""
    names = []
    for minor in range(target.newest, _OLDEST.get(target.architecture, _OLDEST_OTHER) - 1, -1):
        names.append(f"manylinux_2_{minor}_{target.architecture}")
        if minor in _LEGACY:
            names.append(f"{_LEGACY[minor]}_{target.architecture}")
    return [*names, f"linux_{target.architecture}"]


def tags(target: Target) -> list[Tag]:
    """The kinds of wheels that can be installed there, the best first, as pip orders them."""
    number = "{}{}".format(*target.release)
    # Until 3.7 the name of the binary interface told of the memory allocator: https://peps.python.org/pep-3149/
    abi = f"cp{number}m" if target.release < (3, 8) else f"cp{number}"
    names = platforms(target)
    return [
        *cpython_tags(target.release, [abi], names),
        *compatible_tags(target.release, f"cp{number}", names),
    ]


def best_wheel(files: Iterable[str], target: Target) -> str | None:
    """The file that pip would choose among wheels of one version; None if none can be installed."""
    order = {tag: rank for rank, tag in enumerate(tags(target))}
    ranked = []
    for file in files:
        _, _, build, kinds = parse_wheel_filename(file)
        if ranks := [order[kind] for kind in kinds if kind in order]:
            ranked.append((-min(ranks), build, file))
    return max(ranked)[2] if ranked else None


def _without_hashes(line: str) -> str:
    return line.split(" --hash", 1)[0].strip()


def _held_hashes(constraints: Sequence[str]) -> dict[tuple[str, str], str]:
    """sha256 of the constraints that have one: the same environment takes the same file of a version."""
    from hpcgen.net.package_index import pinned

    hashed = pinned(line for line in constraints if "--hash" in line)
    return {(canonicalize_name(pin.name), pin.version): pin.hashes[0] for pin in hashed if len(pin.hashes) == 1}
