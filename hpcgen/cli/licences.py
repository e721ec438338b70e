"""Licences that the user has to accept: by an option, the environment, the user's config file, or when asked."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import ask, say
from hpcgen.cli.personal import save_accepted, somebody_there
from hpcgen.cli.words import LICENCE
from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.image_paths import ACCEPT_LICENCES

if TYPE_CHECKING:
    from hpcgen.core.model.plan import Plan, PlannedLicence

ALL = "all"


licence_option = click.option(
    "--accept-licence",
    "accept",
    multiple=True,
    type=LICENCE,
    help=f"Accept this licence; {ALL} for all of them. Repeatable; also ${ACCEPT_LICENCES}.",
)
"""The option of every command that builds, or pins what is built."""


def accepted_here(licences: Iterable[PlannedLicence], given: Sequence[str]) -> set[str]:
    """Which of these licences are accepted: in the plan, on the command line, by the environment or the config file."""
    words = {*given, *(word.strip() for word in os.environ.get(ACCEPT_LICENCES, "").split(","))}
    words.update(configured("licences", {}))
    return {each.name for each in licences if each.accepted or each.name in words or ALL in words}


def with_licences(plan: Plan, given: Sequence[str], before: Sequence[PlannedLicence] = ()) -> Plan:
    """The plan with all its licences accepted.

    Parameters
    ----------
    before: of an older plan that this one takes the place of; what was accepted there is.

    Raises
    ------
    PolicyError: some are not, and nobody is there who can be asked.
    """
    if all(each.accepted for each in plan.licences):
        return plan
    require_licences(plan.licences, [*given, *(each.name for each in before if each.accepted)])
    return replace(plan, licences=[replace(each, accepted=True) for each in plan.licences])


def as_accepted(plan: Plan, before: Sequence[PlannedLicence]) -> Plan:
    """The plan with what was accepted in an older one; nobody is asked, and a new licence stays open."""
    then = {each.name for each in before if each.accepted}
    return replace(plan, licences=[replace(each, accepted=each.name in then) for each in plan.licences])


def require_licences(licences: Sequence[PlannedLicence], given: Sequence[str]) -> None:
    """Nothing where all are accepted; PolicyError with every one that is not, where nobody can be asked."""
    here = accepted_here(licences, given)
    missing = {each.name: each for each in licences if each.name not in here}
    if missing and somebody_there():
        _ask(list(missing.values()))
    elif missing:
        raise _not_accepted(missing.values())


def say_licences(plan: Plan) -> None:
    """Which licences a build will require, where none is required yet."""
    here = accepted_here(plan.licences, ())
    missing = [each.name for each in plan.licences if each.name not in here]
    if missing:
        say(f"building it requires {' '.join(f'--accept-licence {name}' for name in missing)}")


def _ask(missing: list[PlannedLicence]) -> None:
    """Ask for each; what is accepted is kept in the user's config file, so that it is asked for once."""
    refused = []
    for each in missing:
        ask(f"{each.title} ({each.name}): {each.url}")
        if not click.confirm("Do you accept it?", default=False, err=True):
            refused.append(each)
    accepted = [each.name for each in missing if each not in refused]
    if accepted:
        save_accepted("licences", accepted)
    if refused:
        raise _not_accepted(refused)


def _not_accepted(missing: Collection[PlannedLicence]) -> Exception:
    return PolicyError(
        Problem(
            f"{each.title} must be accepted by the user: {each.url}",
            remedy=f"read it, then add --accept-licence {each.name}, or set {ACCEPT_LICENCES}={each.name}",
        )
        for each in missing
    )
