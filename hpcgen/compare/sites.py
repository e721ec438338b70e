"""What differs between two profiles, fact by fact, with the place of each."""

from __future__ import annotations

from hpcgen.config.provenance import Fact, facts_of, shown_value
from hpcgen.config.yamlfile import Document
from hpcgen.model.fields import Record


class FactChange(Record, frozen=True):
    """A fact that two profiles say otherwise: ``old`` is empty if it is new, ``new`` if it is gone; and where."""

    path: str
    old: str = ""
    new: str = ""
    old_place: str = ""
    new_place: str = ""


def site_changes(old: Document, new: Document) -> list[FactChange]:
    """Every fact that is not the same in both, sorted by its path; InputError for a source that is none."""
    before, after = ({fact.path: fact for fact in facts_of(each)} for each in (old, new))
    return [
        FactChange(path=path, old=_said(one), new=_said(two), old_place=_place(one), new_place=_place(two))
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


def _place(fact: Fact | None) -> str:
    return f"{fact.where.file}:{fact.where.line}" if fact is not None else ""
