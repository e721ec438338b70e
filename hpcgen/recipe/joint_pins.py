"""Wheel lists of several blocks in one Python environment: one version of each package for all of them.

A list has all that its block needs, resolved for this block alone, so two lists may have different versions of a
package that both need. pip would install the later one over the earlier without a word. Here the first version is taken
that all blocks allow by what they ask for themselves, and stands in all their lists. Of a package that a block does not
ask for itself, but gets through others, it is only known that the version of its list will do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.blocks.base import Chosen
from hpcgen.blocks.steps import Wheels
from hpcgen.core.errors import Problem
from hpcgen.core.model.plan import Finding, PlannedBlock
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some

if TYPE_CHECKING:
    # What most lists have is read without a parser of requirements.
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

_PINNED = re.compile(
    r"([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])==(\d+(?:\.\d+)*(?:(?:a|b|rc|\.post|\.dev)\d+)?)"
)
"""What most lines of a list are, which a parser of requirements takes far longer for."""


class ListInstallation(NamedTuple):
    """A wheel list that a step installs: the block, the list, and the folder that it goes into."""

    block: PlannedBlock
    wheels: Wheels
    folder: str


class JoinedLists(NamedTuple):
    """Result for lists that share an environment.

    Parameters
    ----------
    instead: by block the lines that take the place of others; an empty one of a line that goes.
    problems: packages of which no version is right for all.
    doubts: packages of which nobody knows whether the chosen version is right for all.
    """

    instead: dict[str, dict[str, str]]
    problems: list[Problem]
    doubts: list[Finding]


class _Pin(NamedTuple):
    """A package in a list: its line, its version (empty of a range), and the range that the block asks for, if any."""

    of: ListInstallation
    line: str
    version: str
    asked: SpecifierSet | None

    @property
    def label(self) -> str:
        return self.of.block.label

    def allows(self, other: _Pin) -> bool | None:
        """Whether the version of another list is allowed; None: not known."""
        if self.version == other.version:
            return True
        if self.asked is not None:
            return self.asked.contains(other.version, prereleases=True)
        # A block that needs this one and names a version of its own was tried with it.
        deliberate = other.exact and self.of.block.name in other.of.block.needs.values()
        return True if deliberate else None

    @property
    def exact(self) -> bool:
        """Whether the block itself asks for just this version."""
        return self.asked is not None and any(each.operator == "==" for each in self.asked)


def joined(installed: Sequence[ListInstallation], python: Chosen | None, architecture: str) -> JoinedLists:
    """One version for each package of an environment that several blocks' lists have.

    Parameters
    ----------
    installed: lists in the order in which they are installed.
    python, architecture: of the image, for markers and for the commands in remedies.
    """
    found = JoinedLists({}, [], [])
    clashes: dict[tuple[str, str], list[tuple[str, _Pin, _Pin]]] = {}
    doubtful: dict[tuple[str, str], list[str]] = {}
    for name, pins in _shared(installed, python, architecture):
        chosen = _chosen(pins)
        if chosen is None:
            first, other = _clash(pins)
            clashes.setdefault((first.label, other.label), []).append((name, first, other))
            continue
        for block, line, new in _instead(pins, chosen):
            found.instead.setdefault(block, {})[line] = new
        for pin in pins:
            if pin.allows(chosen) is None:
                text = f"{name} {chosen.version} instead of {pin.version}"
                doubtful.setdefault((pin.label, chosen.label), []).append(text)
    found.problems.extend(_problem(each, python, architecture) for each in clashes.values())
    found.doubts.extend(_doubt(*labels, texts) for labels, texts in doubtful.items())
    return found


def _shared(
    installed: Sequence[ListInstallation], python: Chosen | None, architecture: str
) -> Iterator[tuple[str, list[_Pin]]]:
    """Packages that several lists of an environment have in different versions or ranges."""
    by_package: dict[tuple[str, str], list[tuple[ListInstallation, str, str]]] = {}
    for each in installed:
        for line in each.wheels.requirements:
            said = _said(line.partition(" --hash=")[0])
            if said is not None and (said.marker is None or _holds(said.marker, python, architecture)):
                by_package.setdefault((each.folder, said.name), []).append((each, line, said.version))
    for (_, name), found in by_package.items():
        if len({version for _, _, version in found}) > 1:
            yield name, [_Pin(of, line, version, _asked(of.wheels).get(name)) for of, line, version in found]


def _asked(wheels: Wheels) -> dict[str, SpecifierSet]:
    """The range of each package that a block asks for itself."""
    return {normal_name(one.name): one.specifier for one in _requirements(wheels.asked)}


class _Said(NamedTuple):
    """A package in a line of a list: its normal name, its version (empty for a range), where it holds."""

    name: str
    version: str
    marker: Marker | None


@lru_cache(maxsize=16384)
def _said(line: str) -> _Said | None:
    """None where the line is no requirement. Lists share most of their lines, and plans most of their lists."""
    if (pinned := _PINNED.fullmatch(line)) is not None:
        return _Said(normal_name(pinned[1]), pinned[2], None)
    for said in _requirements([line]):
        versions = [one.version for one in said.specifier if one.operator == "=="]
        return _Said(normal_name(said.name), versions[0] if versions else "", said.marker)
    return None


def _requirements(lines: Sequence[str]) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
        try:
            yield Requirement(line.partition(" --hash=")[0])
        except InvalidRequirement:
            continue


def _holds(marker: Marker, python: Chosen | None, architecture: str) -> bool:
    here = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": architecture}
    if python is not None:
        minor = ".".join(python.version.split(".")[:2])
        here |= {"python_version": minor, "python_full_version": python.version}
    return marker.evaluate(here)


def _chosen(pins: Sequence[_Pin]) -> _Pin | None:
    """The first version that all allow; else the last that nobody refuses, which pip would leave there."""
    answers = {pin.version: [other.allows(pin) for other in pins] for pin in pins if pin.version}
    by_version = {pin.version: pin for pin in reversed(pins) if pin.version}
    sure = [version for version, said in answers.items() if all(said)]
    possible = [version for version, said in answers.items() if False not in said]
    if sure:
        return by_version[sure[0]]
    return by_version[possible[-1]] if possible else None


def _clash(pins: Sequence[_Pin]) -> tuple[_Pin, _Pin]:
    """The first list, and one that refuses its version."""
    first = next(pin for pin in pins if pin.version)
    return first, next(pin for pin in pins if pin.allows(first) is False)


def _instead(pins: Sequence[_Pin], chosen: _Pin) -> Iterator[tuple[str, str, str]]:
    """The chosen line in place of the others; where it has no hash, a later list leaves its own out."""
    for at, pin in enumerate(pins):
        if pin.version in ("", chosen.version) or not pin.of.wheels.hashed:
            continue
        if chosen.of.wheels.hashed:
            yield pin.of.block.name, pin.line, chosen.line
        elif at > pins.index(chosen):
            yield pin.of.block.name, pin.line, ""


def _problem(clashes: Sequence[tuple[str, _Pin, _Pin]], python: Chosen | None, architecture: str) -> Problem:
    """The problem of blocks that disagree, with the command that makes one list again by the versions of the other."""
    _, first, other = clashes[0]
    texts = [_text(name, *pins) for name, *pins in clashes]
    if first.of.wheels.places or other.of.wheels.places:
        return Problem(
            f"{first.label} and {other.label} install different versions of one package: {some(texts, 8)}",
            expected="one version of each package in a Python environment",
            remedy="change the version in your file (a lock is written anew by its tool), or leave the block out",
        )
    of_a_table = other if other.of.wheels.hashed else first
    release = f"choose another release of one of them (--set {of_a_table.of.block.name}.version=RANGE)"
    anew = _command(other, [f"{name}=={one.version}" for name, one, _ in clashes], python, architecture)
    return Problem(
        f"{first.label} and {other.label} install different versions of one package: {some(texts, 8)}",
        expected="one version of each package in a Python environment",
        remedy=f"{release}, or leave one out{anew}",
    )


def _text(name: str, first: _Pin, other: _Pin) -> str:
    """Both versions, or ranges, with those that the blocks ask for themselves."""
    asked = [
        f"{pin.label} asks for {name}{pin.asked}{'' if pin.version else _place(pin)}"
        for pin in (first, other)
        if pin.asked and not pin.exact
    ]
    versions = _version(name, first) + (f" and {_version('', other)}" if other.version else "")
    return f"{versions} ({', '.join(asked)})" if asked else versions


def _version(name: str, pin: _Pin) -> str:
    """A package in the version of a list, with the line of the user's file that says so."""
    return f"{name} {pin.version}{_place(pin)}".strip()


def _place(pin: _Pin) -> str:
    asked = {normal_name(each.name) for each in _requirements([pin.line])}
    return next((f" ({place})" for name, place in pin.of.wheels.places if name in asked), "")


def _command(pin: _Pin, held: Sequence[str], python: Chosen | None, architecture: str) -> str:
    """The command that writes a list again, constrained to the versions of another one."""
    wheels = pin.of.wheels
    if python is None or not wheels.hashed or not wheels.asked:
        return ""
    name = wheels.name.removesuffix("-needs").removesuffix(f"-{architecture}")
    named = {normal_name(each.partition("==")[0]) for each in held}
    kept = [str(each) for each in _requirements(wheels.asked) if normal_name(each.name) not in named]
    where = [] if architecture == "x86_64" else ["--architecture", architecture]
    words = shlex.join(["--python", python.version, *where, name, *kept, *held])
    return f"; a list for both, if there is one, is written by: hpcgen --collection DIR wheels lock {words}"


def _doubt(label: str, chosen: str, texts: Sequence[str]) -> Finding:
    return Finding(
        name="python-packages",
        severity="warning",
        message=f"{label} takes the versions of {chosen} (combination not tested): {some(texts, 8)}",
        remedy="the self-test checks with pip that all packages are compatible",
    )
