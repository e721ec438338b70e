"""What commands say of the age of a profile's facts: on the terminal and beside a result, never in what they write."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import collection_words, say
from hpcgen.core.support.units import counted, some

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.machine.ages import Doubtful, OldFact

_SHOWN = 4


class _Day(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.5
    """A day, as 2026-11-27."""

    name = "date"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime.date:
        if isinstance(value, datetime.date):
            return value
        try:
            return datetime.date.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a day; write year, month and day: 2026-11-27", param, ctx)


TODAY = click.option(
    "--today",
    type=_Day(),
    metavar="DATE",
    envvar="HPCGEN_TODAY",
    default=lambda: datetime.date.today(),
    help="Count the age of facts up to this day, such as 2026-11-27; by default today.",
)


def doubts_of(catalog: Catalog, site: str, plan: Plan, today: datetime.date) -> Doubtful:
    """What is not certain of what a plan rests on: facts of the profile, and rows of release tables.

    ``site``: the name or the file of the plan's profile.
    """
    from hpcgen.core.config.provenance import sourced_of
    from hpcgen.machine.ages import doubtful
    from hpcgen.machine.resting import dependent, depends_on
    from hpcgen.planning.findings import unverified_blocks

    planned = dependent(plan.stack.name, plan, catalog)
    found = doubtful(sourced_of(catalog.site_document(site)), today, lambda path: depends_on(planned, path))
    releases = [f"{block.name} {block.version}" for block in unverified_blocks(catalog, plan)]
    return msgspec.structs.replace(found, releases=releases)


def as_data(found: Doubtful, today: datetime.date) -> dict[str, object]:
    """The same as data, with the day that ages were counted up to."""
    return {"today": today.isoformat(), **msgspec.structs.asdict(found)}


def say_doubts(site: str, found: Doubtful, notes: bool) -> None:
    """How much may no longer hold and how much nobody verified, on one line; nothing where all is well.

    ``notes``: name what may no longer hold, too; the plan's own notes list what is not verified.
    """
    if notes:
        say_old(site, found.old)
    say_unverified(found, "" if notes else "--notes", "" if notes else counted(len(found.old), "fact"))


def say_unverified(found: Doubtful, look: str, old: str = "") -> None:
    """One line of what nobody verified.

    ``look``: what lists it all; empty where that is shown anyhow, so that only what is from memory is told. ``old``:
    how many facts may no longer hold, where nothing else says it.
    """
    words = [f"from memory, not verified: {some(found.from_memory, _SHOWN)}"] if found.from_memory else []
    if found.old and old:
        words.append(f"{old} may be stale")
    others = {"fact": (found.not_verified, "of the profile"), "release": (found.releases, "in the release tables")}
    told = [
        f"{counted(len(what), name)} {where}" if not found.old or not old else counted(len(what), name)
        for name, (what, where) in others.items()
        if what
    ]
    if told and look:
        words.append(f"{' and '.join(told)} unverified")
    if words:
        say(f"note: {'; '.join(words)}" + (f" ({look})" if look and (told or old) else ""))


def say_old(site: str, old: Sequence[OldFact], machine: bool = True) -> None:
    """One line of the facts that may no longer hold, and what to do.

    ``machine``: the profile is of a machine, on which the doctor can look, and not only a parent of others.
    """
    if old:
        from hpcgen.core.support.quoting import line

        words = ["hpcgen", *collection_words(click.get_current_context()), "site"]
        look = f"run `{line([*words, 'doctor', site])}` there, or " * machine
        read = f"`{line([*words, 'refresh', site])} --network`"
        say(f"note: may be out of date: {some([*map(_said, old)], _SHOWN)}; {look}{read}")


def _said(fact: OldFact) -> str:
    if fact.as_of is None:
        return f"{fact.path} (its source has no date)"
    return f"{fact.path} (of {fact.as_of}; {fact.kind} hold for {fact.months} months)"
