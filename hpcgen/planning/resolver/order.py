"""The order in which things are built: each after what it needs, unless they need each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpcgen.blocks.requirements import Candidate
from hpcgen.planning.resolver.question import ALWAYS, Question


class Circle(Exception):
    """Identifiers each of which needs the next one, and the last the first."""

    def __init__(self, identifiers: Sequence[str]) -> None:
        self.identifiers = tuple(identifiers)
        super().__init__(" → ".join(self.identifiers))


def build_order(question: Question, chosen: Mapping[str, Candidate]) -> list[str]:
    """Identifiers in build order: what every image has first, then each need before what needs it.

    Raises
    ------
    Circle: there is none.
    """
    needed = {identifier: built_before(question, candidate) for identifier, candidate in chosen.items()}
    return in_order([*(root.identifier for root in question.roots), *sorted(chosen)], needed, ALWAYS)


def built_before(question: Question, candidate: Candidate) -> list[str]:
    """Identifiers that have to be built before a candidate, besides what every image has."""
    needed = (requirement.identifier for _, _, requirement in question.needs(candidate) if requirement.demanded)
    return [name for name in needed if name not in ALWAYS and name != candidate.identifier]


def in_order(starts: Iterable[str], needed: Mapping[str, Sequence[str]], first: Sequence[str] = ()) -> list[str]:
    """The names that ``starts`` lead to, each after those that it needs; a name that ``needed`` lacks is left out.

    Raises
    ------
    Circle: there is no such order.
    """
    order = list(first)
    done = set(order)
    for start in starts:
        path = {} if start in done or start not in needed else {start: iter(needed[start])}
        while path:
            last = next(reversed(path))
            below = next((name for name in path[last] if name in needed and name not in done), None)
            if below is None:
                del path[last]
                done.add(last)
                order.append(last)
            elif below in path:
                raise Circle(list(path)[list(path).index(below) :])
            else:
                path[below] = iter(needed[below])
    return order
