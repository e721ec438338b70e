"""Lines of wheel lists and requirements of packages, read for one Python and architecture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.blocks.base import Chosen
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_tags import minor_of

if TYPE_CHECKING:
    # What most lists have is read without a parser of requirements.
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

_PINNED = re.compile(
    r"([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])==(\d+(?:\.\d+)*(?:(?:a|b|rc|\.post|\.dev)\d+)?)"
)
"""What most lines of a list are, which a parser of requirements takes far longer for."""


class PackageLine(NamedTuple):
    """A package in a line of a list: its normal name, its version (empty for a range), where it holds."""

    name: str
    version: str
    marker: Marker | None


class Needs(NamedTuple):
    """A package that another one requires, and in which range."""

    name: str
    specifier: SpecifierSet


@lru_cache(maxsize=16384)
def package_line(line: str) -> PackageLine | None:
    """None where the line is no requirement. Lists share most of their lines, and plans most of their lists."""
    if (pinned := _PINNED.fullmatch(line)) is not None:
        return PackageLine(normal_name(pinned[1]), pinned[2], None)
    for said in requirements([line]):
        versions = [one.version for one in said.specifier if one.operator == "=="]
        exact = versions[0] if versions and not versions[0].endswith(".*") else ""
        return PackageLine(normal_name(said.name), exact, said.marker)
    return None


def requirements(lines: Sequence[str]) -> Iterator[Requirement]:
    """Those of the lines that are requirements, without their hashes."""
    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
        try:
            yield Requirement(line.partition(" --hash=")[0])
        except InvalidRequirement:
            continue


def holds(marker: Marker | None, python: Chosen | None, architecture: str) -> bool:
    """Whether a marker is true in the image; without extras."""
    if marker is None:
        return True
    return _evaluated(str(marker), python.version if python is not None else "", architecture)


@lru_cache(maxsize=4096)
def _evaluated(marker: str, python: str, architecture: str) -> bool:
    from packaging.markers import Marker

    here = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": architecture, "os_name": "posix"}
    here |= {"implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": ""}
    if python:
        minor = minor_of(python)
        here |= {"python_version": minor, "python_full_version": python}
    return Marker(marker).evaluate(here)


@lru_cache(maxsize=16384)
def _parsed(line: str) -> tuple[Needs, Marker | None] | None:
    for said in requirements([line]):
        return Needs(normal_name(said.name), said.specifier), said.marker
    return None


def needs_of(lines: Sequence[str], python: Chosen | None, architecture: str) -> list[Needs]:
    """What the lines require in the image."""
    parsed = (_parsed(line) for line in lines)
    return [each for each, marker in filter(None, parsed) if holds(marker, python, architecture)]
