"""Terms as columns: which values the rows have, and what a case is in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import NamedTuple

from hpcgen.core.model.fields import Record
from hpcgen.plugins.tuning.predict.observations import Observation
from hpcgen.plugins.tuning.predict.terms import TERMS, Described, Term


class TermRange(Record, frozen=True):
    """The values of a term in the rows: from ``low`` to ``high``, or the names of ``categories``, sorted.

    ``reference``: the category that the coefficients of the others are in relation to, the commonest one.
    """

    term: str
    low: float | None = None
    high: float | None = None
    categories: list[str] = []
    reference: str = ""


class TermColumn(NamedTuple):
    """One column: of a number, whose ``typical`` logarithm is 0 here and stands for one that is not known, or of one
    ``category``."""

    term: str
    category: str
    typical: float

    def value(self, case: Described) -> float:
        """What a case has in this column."""
        found = case.get(self.term)
        if found is None:
            return 0.0
        if isinstance(found, str):
            return float(found == self.category)
        return log(found) - self.typical


MOSTLY_KNOWN = 0.5
"""A number that fewer than this share of workloads or machines (of rows for a layout) states is no term."""


def seen_in(rows: Sequence[Observation]) -> list[TermRange]:
    """The values of every term that is known of the rows, baselines included."""
    cases = [case for row in rows for case in (row.terms, row.baseline_terms) if case is not None]
    return [seen for term in TERMS if (seen := _seen(term, cases)) is not None]


def _seen(term: Term, cases: Sequence[Described]) -> TermRange | None:
    values = [case[term.name] for case in cases if term.name in case]
    if not values or (term.kind == "number" and _known(term, cases) < MOSTLY_KNOWN):
        return None
    names = Counter(value for value in values if isinstance(value, str))
    if not names:
        numbers = [float(value) for value in values]
        return TermRange(term=term.name, low=min(numbers), high=max(numbers))
    compared = not term.new and "×" not in term.name
    reference = min(names, key=lambda name: (-names[name], name)) if compared else ""
    return TermRange(term=term.name, categories=sorted(names), reference=reference)


def _known(term: Term, cases: Sequence[Described]) -> float:
    """The share of those whose number it is that state it."""
    owner = {"workload": "workload", "hardware": "machine"}.get(term.of)
    stated: dict[object, bool] = {}
    for index, case in enumerate(cases):
        name = case[owner] if owner else index
        stated[name] = stated.get(name, False) or term.name in case
    return sum(stated.values()) / len(stated)


def places(rows: Sequence[Observation], seen: Sequence[TermRange]) -> list[TermColumn]:
    """A column for each number, and for each category but the reference."""
    found = []
    for each in seen:
        if each.categories:
            found += [TermColumn(each.term, name, 0.0) for name in each.categories if name != each.reference]
        else:
            logarithms = [log(float(row.terms[each.term])) for row in rows if each.term in row.terms]
            found.append(TermColumn(each.term, "", sum(logarithms) / len(logarithms)))
    return found
