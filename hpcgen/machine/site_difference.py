"""What differs between two profiles, fact by fact, with the place of each."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.core.config.provenance import Fact, facts_of, shown_value
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.model.fields import Record


class FactChange(Record, frozen=True):
    """A fact that two profiles say otherwise: ``old`` is empty if it is new, ``new`` if it is gone; and where."""

    path: str
    old: str = ""
    new: str = ""
    old_place: str = ""
    new_place: str = ""


def site_changes(old: Document, new: Document, places: Mapping[str, str] = {}) -> list[FactChange]:
    """Every fact that is not the same in both, sorted by its path; InputError for a source that is none.

    Parameters
    ----------
    places: what is said in the place of the beginning of a file's name.
    """
    before, after = ({fact.path: fact for fact in facts_of(each)} for each in (old, new))
    return [
        FactChange(
            path=path, old=_said(one), new=_said(two), old_place=_place(one, places), new_place=_place(two, places)
        )
        for path in sorted(before.keys() | after.keys())
        for one, two in [(before.get(path), after.get(path))]
        if one is None or two is None or one.value != two.value
    ]


def changes_text(found: list[FactChange]) -> str:
    """One line each, with both values and their places."""
    lines = []
    for each in found:
        old, new = (f"{value} [{place}]" if place else "" for value, place in _sides(each))
        said = f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}"
        lines.append(f"{each.path}: {said}")
    return "\n".join(lines)


def _sides(each: FactChange) -> tuple[tuple[str, str], tuple[str, str]]:
    return (each.old, each.old_place), (each.new, each.new_place)


def _said(fact: Fact | None) -> str:
    return shown_value(fact.value) if fact is not None else ""


def _place(fact: Fact | None, places: Mapping[str, str]) -> str:
    if fact is None:
        return ""
    file = fact.where.file
    begin = next((each for each in places if file.startswith(each)), "")
    return f"{places.get(begin, '')}{file.removeprefix(begin)}:{fact.where.line}"
