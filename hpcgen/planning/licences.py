"""Licences that the user has to accept before something is locked or built: what is accepted, and what is not yet."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.image_paths import ACCEPT_LICENCES
from hpcgen.core.model.plan import Plan, PlannedLicence

ALL = "all"
"""The word for every licence, where names are given."""


def accepted_here(licences: Iterable[PlannedLicence], given: Collection[str]) -> set[str]:
    """Which of these licences are accepted: in the plan, by the caller, by the environment or the config file."""
    words = {*given, *(word.strip() for word in os.environ.get(ACCEPT_LICENCES, "").split(","))}
    words.update(configured("licences", {}))
    return {each.name for each in licences if each.accepted or each.name in words or ALL in words}


def open_licences(licences: Iterable[PlannedLicence], given: Collection[str]) -> list[PlannedLicence]:
    """Those that nobody has accepted, each once."""
    licences = list(licences)
    here = accepted_here(licences, given)
    return list({each.name: each for each in licences if each.name not in here}.values())


def require_accepted(licences: Iterable[PlannedLicence], given: Collection[str]) -> None:
    """PolicyError with every licence that nobody has accepted."""
    if missing := open_licences(licences, given):
        raise not_accepted(missing)


def not_accepted(missing: Iterable[PlannedLicence]) -> PolicyError:
    """The error, which says how each is accepted."""
    return PolicyError(
        Problem(
            f"{each.title} must be accepted by the user: {each.url}",
            remedy=f"read it, then add --accept-licence {each.name}, or set {ACCEPT_LICENCES}={each.name}",
        )
        for each in missing
    )


def all_accepted(plan: Plan) -> Plan:
    """The plan with all its licences accepted, which the caller has made sure of."""
    return replace(plan, licences=[replace(each, accepted=True) for each in plan.licences])


def accepted_before(plan: Plan, before: Sequence[PlannedLicence]) -> Plan:
    """The plan with what was accepted in an older one; a new licence stays open."""
    then = {each.name for each in before if each.accepted}
    return replace(plan, licences=[replace(each, accepted=each.name in then) for each in plan.licences])
