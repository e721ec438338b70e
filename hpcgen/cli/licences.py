"""The option by which licences are accepted, and the question to the user where it is not given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import ask, say
from hpcgen.cli.personal import save_accepted, somebody_there
from hpcgen.cli.words import LICENCE
from hpcgen.core.model.image_paths import ACCEPT_LICENCES

if TYPE_CHECKING:
    from hpcgen.core.model.plan import Plan, PlannedLicence


licence_option = click.option(
    "--accept-licence",
    "accept",
    multiple=True,
    type=LICENCE,
    help=f"Accept this licence; all for all of them. Repeatable; also ${ACCEPT_LICENCES}.",
)
"""The option of every command that builds, or pins what is built."""


def check_before_asking(plan: Plan, given: Sequence[str], engine: str | None) -> None:
    """MissingToolError where nothing here can build: nobody is asked about licences for that."""
    from hpcgen.builders.choosing import choose_builder
    from hpcgen.planning.licences import open_licences

    if open_licences(plan.licences, given):
        choose_builder(plan, engine)


def with_licences(plan: Plan, given: Sequence[str], before: Sequence[PlannedLicence] = ()) -> Plan:
    """The plan with all its licences accepted.

    ``before``: of an older plan that this one takes the place of; what was accepted there is. PolicyError: some are
    not, and nobody is there who can be asked.
    """
    from hpcgen.planning.licences import all_accepted

    require_licences(plan.licences, [*given, *(each.name for each in before if each.accepted)])
    return all_accepted(plan)


def require_licences(licences: Sequence[PlannedLicence], given: Sequence[str]) -> None:
    """Nothing where all are accepted; PolicyError with every one that is not, where nobody can be asked."""
    from hpcgen.planning.licences import not_accepted, open_licences

    missing = open_licences(licences, given)
    if missing and somebody_there():
        _ask(missing)
    elif missing:
        raise not_accepted(missing)


def say_licences(plan: Plan) -> None:
    """Which licences a build will require, where none is required yet."""
    from hpcgen.planning.licences import open_licences

    if missing := open_licences(plan.licences, ()):
        say(f"building it requires {' '.join(f'--accept-licence {each.name}' for each in missing)}")


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
        from hpcgen.planning.licences import not_accepted

        raise not_accepted(refused)
