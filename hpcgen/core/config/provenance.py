"""The origin of each fact of a profile: its file and line, and its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.fields import Source

NO_FACTS = frozenset({"name", "aliases", "title", "links", "notes", "sources", "extends", "abstract", "archived"})
"""Identity and remarks: they say nothing of the machine that a source would have to show."""

Mark = Literal["verified", "unverified", "no source"]


class Sourced(msgspec.Struct, frozen=True):
    """One value of a profile, and its source.

    path: such as ``mpi.version``; a list is one fact.
    value: as YAML has it.
    source: what stands for it; None if nothing does.
    source_path: the path that the source is written for, which covers all below it.
    """

    path: str
    value: Any
    source: Source | None = None
    source_path: str = ""

    @property
    def mark(self) -> Mark:
        """Whether a source was really read."""
        if self.source is None:
            return "no source"
        return "verified" if self.source.verified == "yes" else "unverified"


class Fact(Sourced, frozen=True, kw_only=True):
    """The same, and where it is.

    ``where``: the file and line that say it: the profile's own, or a parent's.
    """

    where: Position


class Counts(msgspec.Struct, frozen=True):
    """How many facts a profile has, and how they are known."""

    facts: int
    verified: int
    unverified: int
    without_source: int

    def __str__(self) -> str:
        return (
            f"{self.facts} facts, {self.verified} verified, {self.unverified} unverified, "
            f"{self.without_source} without a source"
        )


def facts_of(document: Document) -> list[Fact]:
    """Every fact of a profile with its place, as :func:`sourced_of`."""
    return [
        Fact(
            fact.path,
            fact.value,
            fact.source,
            fact.source_path,
            where=document.position(steps, key=isinstance(fact.value, (list, dict))),
        )
        for steps, fact in _sourced(document)
    ]


def sourced_of(document: Document) -> list[Sourced]:
    """Every fact of a profile with its parents merged in, in the order in which it is written.

    A source covers what stands under its path, and the longest path counts. It speaks for values of its own file and
    of the parents of that file: a value that a child says anew is not covered by the source of its parent.

    InputError: a source that is none.
    """
    return [fact for _, fact in _sourced(document)]


def _sourced(document: Document) -> Iterator[tuple[tuple[str, ...], Sourced]]:
    sources = _sources(document)
    nearness = {name: number for number, name in enumerate(document.files())}
    for steps, value in _leaves(document.data):
        own = nearness[document.said_by(steps)]
        path = ".".join(steps)
        fitting = [
            (len(covered), covered)
            for covered, (said, _source) in sources.items()
            if f"{path}.".startswith(f"{covered}.") and nearness[said] <= own
        ]
        best = max(fitting)[1] if fitting else ""
        yield steps, Sourced(path, value, sources[best][1] if best else None, best)


def counts(facts: Iterable[Sourced]) -> Counts:
    """How many of them are verified."""
    marks = [fact.mark for fact in facts]
    return Counts(len(marks), marks.count("verified"), marks.count("unverified"), marks.count("no source"))


def _leaves(data: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in data.items():
        if not above and key in NO_FACTS:
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _sources(document: Document) -> dict[str, tuple[str, Source]]:
    """Path → the file that says the source, and the source."""
    written = document.data.get("sources")
    if written is None:
        return {}
    problems = Problems()
    found = {}
    for path in written if isinstance(written, dict) else ():
        with problems.caught():
            source = convert(document, Source, ("sources", path))
            found[path] = (document.said_by(("sources", path)), source)
    problems.raise_as(InputError)
    return found


def shown_value(value: Any) -> str:
    """A value on one line, as YAML would have it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(shown_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
