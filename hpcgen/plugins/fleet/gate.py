"""A gate: no image that advisories of some severity are about, but for the exceptions that the fleet gives reasons for.

A plan is judged before it is built, by what it names; the image afterwards, by what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, PolicyError, Problem, Problems
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import BuiltImage
from hpcgen.core.support.units import harmless, some
from hpcgen.images.reference import ImageReference
from hpcgen.machine.resting import Dependent, dependent
from hpcgen.plugins.fleet.advisories import Advisory, read_advisories
from hpcgen.plugins.fleet.affected import AdvisedPackage, advised, unjudged_ecosystems, with_packages
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.records import AdvisoryException, LockedImage
from hpcgen.plugins.fleet.severity import LEVELS, Severity, severity_of

_MOST_TOLD = 20


class UnjudgedError(HpcgenError):
    """Nothing is refused as far as is known, but something is not known: the exit code of ``hpcgen affected``."""

    exit_code = 13


class Gate(msgspec.Struct, frozen=True):
    """What is let through.

    rated: advisories with their severity, None where it is not known; none that is withdrawn, or too small to count.
    level: from which on an image is refused.
    exceptions: of the fleet, with the day from which they count no longer. today: such as 2026-11-20.
    """

    rated: list[tuple[Advisory, Severity | None]]
    level: Severity
    exceptions: Sequence[AdvisoryException] = ()
    today: str = ""

    def hold(self, each: Dependent, catalog: Catalog, final: bool, unread: Sequence[str] = ()) -> list[str]:
        """Judge one image.

        Returns what the fleet's exceptions let through, each with its reason.

        final: it is built; a plan may leave open what its image answers.
        unread: what of it could not be read.
        PolicyError: advisories of that severity are about it, all of them. UnjudgedError: that is not known.
        """
        excepted = [advisory for advisory, _ in self.rated if self._excepted(advisory) is not None]
        counted = [advisory for advisory, _ in self.rated if self._excepted(advisory) is None]
        severities = {advisory.id: severity for advisory, severity in self.rated}
        unknown, refused = [*unread, *unjudged_ecosystems(counted)], dict[str, Problem]()
        for found in advised(each, catalog, counted, unknown):
            what, severity = harmless(f"{each.label} has {found.what}"), severities[found.advisory.id]
            if severity is None:
                unknown.append(f"{what}: its severity is unknown")
            else:
                refused[what] = self._refusal(what, severity, found)
        if refused:
            raise PolicyError(refused.values())
        if final and unknown:
            raise UnjudgedError(_told(unknown))
        passed = [(found.what, self._excepted(found.advisory)) for found in advised(each, catalog, excepted, [])]
        return [harmless(f"{each.label} has {what}; accepted: {why.reason}") for what, why in passed if why is not None]

    def _excepted(self, advisory: Advisory) -> AdvisoryException | None:
        return next((each for each in self._named(advisory) if each.until is None or self.today <= each.until), None)

    def _named(self, advisory: Advisory) -> Iterator[AdvisoryException]:
        names = {advisory.id, *(advisory.aliases or ())}
        yield from (each for each in self.exceptions if each.id in names)

    def _refusal(self, what: str, severity: Severity, found: AdvisedPackage) -> Problem:
        ended = "".join(f"; its exception ended on {each.until}" for each in self._named(found.advisory))
        mended = f"upgrade it to {harmless(found.mended)} or newer" if found.mended else "have another release"
        return Problem(
            f"{what} (severity {severity}){ended}",
            expected=f"nothing of severity {self.level} or above",
            remedy=f"{mended}, or give the reason in `advisory_exceptions` of the fleet",
        )


def read_gate(path: Path, level: Severity, exceptions: Sequence[AdvisoryException] = ()) -> Gate:
    """The gate by the OSV files of a folder.

    InputError: a file is no advisory. MissingToolError: the library for CVSS is needed and not installed.
    """
    current = [each for each in read_advisories(path) if not each.withdrawn]
    rated = [(each, severity_of(each)) for each in current]
    least = LEVELS.index(level)
    counted = [(each, rank) for each, rank in rated if rank is None or LEVELS.index(rank) >= least]
    return Gate(counted, level, exceptions, datetime.now(timezone.utc).date().isoformat())


def judge(
    gate: Gate,
    name: str,
    plan: Plan,
    catalog: Catalog,
    say: Callable[[str], None],
    *,
    image: BuiltImage | None = None,
    lock: Lock | None = None,
    final: bool = False,
) -> None:
    """Judge the plan, or the image that was built of it, and say what exceptions let through; as :meth:`Gate.hold`.

    ``final``: the plan, too, may leave nothing open.
    """
    each, unread = dependent(name, plan, catalog, lock), list[str]()
    if image is not None:
        each = with_packages(each, catalog, ImageReference(image.kind, image.name), unread)
    for word in gate.hold(each, catalog, final or image is not None, unread):
        say(f"note: {word}")


def refused_plans(
    gate: Gate, states: Sequence[MemberState], catalog: Catalog, say: Callable[[str], None]
) -> dict[str, HpcgenError]:
    """Judge the plan of each member, before anything is compiled for them: the errors by name, of those refused."""
    refused: dict[str, HpcgenError] = {}
    for state in states:
        if state.plan is None:
            continue
        try:
            judge(gate, state.member.name, state.plan, catalog, say)
        except HpcgenError as error:
            for problem in error.problems:
                say(f"error: {problem}")
            refused[state.member.name] = error
    if refused:
        say(f"{some(list(refused))}: refused, and nothing is compiled for them")
    return refused


def judge_members(
    gate: Gate,
    states: Sequence[MemberState],
    locked: Mapping[str, LockedImage],
    catalog: Catalog,
    say: Callable[[str], None],
) -> None:
    """Judge each member, by its image if it is as planned now; raises as :meth:`Gate.hold`, for all of them."""
    refused, unknown = Problems(), Problems()
    for state in states:
        if state.plan is None:
            continue
        name, image = state.member.name, None
        if not state.to_build and name in locked:
            kind, _, file = locked[name].image.partition(":")
            image = BuiltImage(kind, file)
        try:
            judge(gate, name, state.plan, catalog, say, image=image, final=True)
        except UnjudgedError as error:
            unknown += error.problems
        except PolicyError as error:
            refused += error.problems
    refused.raise_as(PolicyError)
    unknown.raise_as(UnjudgedError)


def _told(unknown: list[str]) -> Iterator[Problem]:
    distinct = list(dict.fromkeys(map(harmless, unknown)))
    for word in distinct[:_MOST_TOLD]:
        yield Problem(
            f"not known: {word}", remedy="lock the stack, or give the reason in `advisory_exceptions` of the fleet"
        )
    if len(distinct) > _MOST_TOLD:
        more = len(distinct) - _MOST_TOLD
        yield Problem(f"not known: {more} more", remedy="hpcgen affected --advisory lists them all")
