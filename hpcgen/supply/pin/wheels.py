"""Hashed wheel lists: everything that some packages need, for a Python and a C library that are not this machine's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from hpcgen.core.errors import InputError, Problems
from hpcgen.core.support.python_names import normal_name
from hpcgen.core.support.wheel_tags import WheelTarget
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
) -> list[str]:
    """Requirement lines with one hash each, complete with every dependency, sorted by name.

    The hash is that of the file which pip would install there. uv chooses the versions.

    Parameters
    ----------
    requirements: in pip's form, without addresses and options.
    python: the version of CPython, exact if possible: dependencies may hang on it.
    glibc: the C library's version, such as ``2.36``.
    sdists: ``name==version`` of packages to take as source.
    constraints: lines of lists that go into the same environment, with hashes or without.
    indexes: as for :func:`hpcgen.supply.net.package_index.find_files`.

    Raises
    ------
    ConflictError: there is no solution; the resolver's own last words say why.
    FetchError: an index could not be asked, or lacks a source package.
    InputError: a requirement that is none.
    MissingToolError: hpcgen was installed without the extra ``lock``, or there is no pip.
    """
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
    )
    hashes = _held_hashes(constraints)
    return [
        msgspec.structs.replace(each, sha256=hashes.get((each.name, each.version), each.sha256)).line
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
            problems.add(f"{line!r} is no requirement", expected="such as numpy or h5py==3.11.0")
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
