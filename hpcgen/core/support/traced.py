"""Text whose lines know their subject, so that it need not be read out of the text again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING: Mapping[int, Subject] = MappingProxyType({})


class Subject(NamedTuple):
    """The subject of a line of a kit's file.

    kind: what sort of thing: ``step``, ``variable``, ``base``, ``job``, ``fact``, …;
        :mod:`hpcgen.planning.explain` tells more of each.
    name: which one: a variable's name, ``BLOCK VERSION: WHAT`` of a step, the path of a fact.
    stage: ``builder`` or ``final``, where it is of one of them.
    """

    kind: str
    name: str = ""
    stage: str = ""


class Traced(str):
    """Text as any other; ``str`` of it is what is written and encoded.

    ``subjects``: what its lines are of, by their number from 0; not every line has one.
    """

    subjects: Mapping[int, Subject] = _NOTHING


def traced(text: str, subject: Subject) -> Traced:
    """The text, all lines of which are of one thing."""
    found = Traced(text)
    found.subjects = dict.fromkeys(range(text.count("\n") + (not text.endswith("\n"))), subject)
    return found


def subjects_of(text: str) -> Mapping[int, Subject]:
    """The subjects of the lines of a text, by their number from 0."""
    return text.subjects if isinstance(text, Traced) else _NOTHING


def without_last_break(text: str) -> str:
    """The text without the line break at its end, if it has one."""
    found = text.removesuffix("\n")
    if not isinstance(text, Traced):
        return found
    shorter = Traced(found)
    shorter.subjects = text.subjects
    return shorter


def together(parts: Iterable[str], between: str = "") -> str:
    """Texts one after the other. A line that several of them are on is of the first that says what it is of."""
    pieces = list(parts)
    text = between.join(pieces)
    if not any(isinstance(piece, Traced) for piece in pieces):
        return text
    found = Traced(text)
    subjects: dict[int, Subject] = {}
    line, step = 0, between.count("\n")
    for piece in pieces:
        for number, subject in subjects_of(piece).items():
            subjects.setdefault(line + number, subject)
        line += piece.count("\n") + step
    found.subjects = subjects
    return found
