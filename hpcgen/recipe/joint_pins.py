"""Wheel lists of several blocks in one Python environment: one version of each package for all of them.

A list has all that its block needs, resolved for this block alone, so two lists may have different versions of a
package that both need, and a project's file may ask for another one still. pip would install the later one over the
earlier without a word. A list's version is a choice and no demand. Demands are what blocks and the project's files ask
for themselves, and what packages require. Of each package is taken, in this order, the version of a list, the newest
that other lists of the collections have for this Python, the project's exact version, or its range, of which `hpcgen
lock` or pip takes the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.blocks.base import Chosen
from hpcgen.blocks.steps import Wheels
from hpcgen.core.errors import Problem
from hpcgen.core.model.plan import Finding, PlannedBlock
from hpcgen.recipe.requirement_lines import holds, package_line

if TYPE_CHECKING:
    from hpcgen.core.model.wheel_facts import WheelFacts
    from hpcgen.recipe.version_choice import VersionRule


class ListInstallation(NamedTuple):
    """A wheel list that a step installs: the block, the list, the folder that it goes into, and whose pip installs it:
    the prefix of a Python.
    """

    block: PlannedBlock
    wheels: Wheels
    folder: str
    by: str = ""


class Knowledge(NamedTuple):
    """What is known beside the lists that are installed.

    facts: what wheels require; asked only where lists or a project's packages meet.
    others: the lines of all lists that are for this Python, architecture and C library, by the name of the list.
    constraints: ranges of the project for packages that something else needs.
    """

    facts: Callable[[], WheelFacts]
    others: Callable[[], Iterable[tuple[str, Sequence[str]]]] = lambda: ()
    constraints: Sequence[str] = ()


class LeftOpen(NamedTuple):
    """What of an environment's packages no list decides.

    ``ranges``: of packages that the user names, and that no list has with a hash in that version: the joint range.
    ``provided``: packages that come another way than by a list, with their version.
    """

    ranges: dict[str, str]
    provided: dict[str, str]


class ListClash(NamedTuple):
    """Rules that no choice of versions meets, and the releases of the blocks whose lists take part in it."""

    rules: Sequence[VersionRule]
    releases: Mapping[str, str]


class JoinedLists(NamedTuple):
    """Result for lists that share an environment.

    instead: by block the lines that take the place of others; an empty one of a line that goes.
    problems: packages of which no version is right for all; the same as clashes.
    doubts: packages of which nobody knows whether the chosen version is right for all.
    left_open: by folder, what `hpcgen lock` or pip chooses there.
    taken: lists of collections that a line was taken from, beside those that are installed.
    """

    instead: dict[str, dict[str, str]]
    problems: list[Problem]
    doubts: list[Finding]
    left_open: dict[str, LeftOpen]
    taken: set[str]
    clashes: list[ListClash]


class ListedPin(NamedTuple):
    """A package in a list: the list, its line, and its version, which is empty of a range."""

    of: ListInstallation
    line: str
    version: str

    @property
    def label(self) -> str:
        return self.of.block.label

    @property
    def hashed(self) -> bool:
        return self.of.wheels.hashed


def joined(
    installed: Sequence[ListInstallation], python: Chosen | None, architecture: str, known: Knowledge
) -> JoinedLists:
    """One version for each package of an environment that several blocks' lists have.

    ``installed``: lists in the order in which they are installed. ``python``, ``architecture``: of the image, for
    markers and for the commands in remedies.
    """
    found = JoinedLists({}, [], [], {}, set(), [])
    for folder in dict.fromkeys(each.folder for each in installed):
        here = [each for each in installed if each.folder == folder]
        pins = _pins(here, python, architecture)
        if _is_open(here, pins):
            from hpcgen.recipe.shared_environment import SharedEnvironment

            SharedEnvironment(here, pins, python, architecture, known).join(found)
    return found


def _pins(
    installed: Sequence[ListInstallation], python: Chosen | None, architecture: str
) -> dict[str, list[ListedPin]]:
    found: dict[str, list[ListedPin]] = {}
    for each in installed:
        for line in each.wheels.requirements:
            said = package_line(line.partition(" --hash=")[0])
            if said is not None and holds(said.marker, python, architecture):
                found.setdefault(said.name, []).append(ListedPin(each, line, said.version))
    return found


def _is_open(installed: Sequence[ListInstallation], pins: Mapping[str, Sequence[ListedPin]]) -> bool:
    """Whether anything is to be chosen: lists differ, or one has ranges or versions without hashes."""
    loose = any(each.wheels.requirements and not each.wheels.hashed for each in installed)
    return loose or any(len({pin.version for pin in several}) > 1 for several in pins.values())
