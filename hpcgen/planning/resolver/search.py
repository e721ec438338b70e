"""The newest of everything that fits, in the documented order of choice.

Identifiers are chosen one after the other, always the first in :meth:`Question.rank` of those that are needed so far.
Each becomes the best candidate with which a plan exists. ``straight`` takes the best that nothing chosen so far
refuses: where that ends in a plan, every candidate that it passed over was refused by something that was chosen
before, so the plan is the one that is meant. Where it ends in a contradiction,
``hpcgen.planning.resolver.exact`` decides.
"""

from __future__ import annotations

import heapq
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from hpcgen.blocks.requirements import Candidate, Form, Requirement
from hpcgen.planning.resolver.question import ALWAYS, Question

# The order in which things are built: each after what it needs, unless they need each other in a circle.


class Circle(Exception):
    """Identifiers each of which needs the next one, and the last the first."""

    def __init__(self, identifiers: Sequence[str]) -> None:
        self.identifiers = tuple(identifiers)
        super().__init__(" → ".join(self.identifiers))


def build_order(question: Question, chosen: Mapping[str, Candidate]) -> list[str]:
    """Identifiers in build order: what every image has first, then each need before what needs it.

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


Chosen = dict[str, Candidate]
"""The candidate of each identifier, in the order of choice."""


def search(question: Question, roots: Sequence[Requirement]) -> Agenda | None:
    """The choices of the plan, and who asked for them; None if there is no plan."""
    found = straight(question, roots)
    if found is not None and not _in_a_circle(question, found.chosen):
        return found
    from hpcgen.planning.resolver.exact import exact

    return exact(question, roots).best()


def _in_a_circle(question: Question, chosen: Chosen) -> bool:
    try:
        build_order(question, chosen)
    except Circle:
        return True
    return False


class Agenda:
    """The open needs: requirements on each identifier, the next one to choose, and the choices so far."""

    def __init__(self, question: Question, roots: Sequence[Requirement]) -> None:
        self.question = question
        self.asked: dict[str, list[Requirement]] = {}
        self.chosen: Chosen = {}
        self._open: list[tuple[object, ...]] = []
        self._seen: set[str] = set()
        self._awaited: dict[str, list[str]] = {}
        for root in roots:
            self._ask(root)

    def _ask(self, requirement: Requirement) -> None:
        identifier = requirement.identifier
        self.asked.setdefault(identifier, []).append(requirement)
        if requirement.demanded and identifier not in self._seen:
            self._seen.add(identifier)
            heapq.heappush(self._open, self.question.rank(identifier))
            for other in self.question.may_need(identifier):
                self._awaited.setdefault(other, []).append(identifier)

    def choose(self, candidate: Candidate) -> None:
        """Put a candidate into the plan, and ask for what it needs."""
        self.chosen[candidate.identifier] = candidate
        for _, _, requirement in self.question.needs(candidate):
            self._ask(requirement)

    def pending(self, identifier: str) -> Iterator[str]:
        """Identifiers that are needed, not chosen yet, and may need an identifier themselves."""
        return (other for other in self._awaited.get(identifier, ()) if other not in self.chosen)

    def __iter__(self) -> Iterator[str]:
        """The identifiers in the order of choice, as long as something is open."""
        while self._open:
            yield str(heapq.heappop(self._open)[-1])


def straight(question: Question, roots: Sequence[Requirement]) -> Agenda | None:
    """The best candidate of each identifier that nothing chosen before refuses; None at a dead end."""
    agenda = Agenda(question, roots)
    blocks: dict[str, Candidate] = {}
    for identifier in agenda:
        asked = agenda.asked[identifier]
        enough = _enough(asked)
        if len(enough) > 1:
            # There may be forms between that and the whole.
            return None
        forms_of = partial(_forms, question, enough)
        found = next(
            (
                candidate
                for candidate in in_forms(question, identifier, forms_of)
                if _fits(question, candidate, asked, agenda.chosen, blocks) and _leaves(question, candidate, agenda)
            ),
            None,
        )
        if found is None:
            return None
        agenda.choose(found)
        blocks[found.block] = found
    return agenda


def _leaves(question: Question, candidate: Candidate, agenda: Agenda) -> bool:
    """Whether a candidate leaves something of all that is needed so far, as a base does of compilers."""
    beside = ChainMap({candidate.identifier: candidate}, agenda.chosen)
    for identifier in agenda.pending(candidate.identifier):
        asked = agenda.asked[identifier]
        enough = _enough(asked)
        if len(enough) > 1:
            continue
        others = in_forms(question, identifier, partial(_forms, question, enough))
        if not any(_fits(question, c, asked, beside, {}) for c in others):
            return False
    return True


def _enough(asked: Sequence[Requirement]) -> Mapping[str, str]:
    """The form that is enough for all requests."""
    first, *others = [r.enough for r in asked if r.enough is not None] or [{}]
    return {option: value for option, value in first.items() if all(other.get(option) == value for other in others)}


def _forms(question: Question, enough: Mapping[str, str], block: str) -> set[Form]:
    return {(), question.choices.form(block, enough)} if enough else {()}


def in_forms(question: Question, identifier: str, forms: Callable[[str], Iterable[Form]]) -> list[Candidate]:
    """The candidates of an identifier in the forms of each block, best first.

    What is kept, then the best suited provider, then its smallest form, then the newest version.
    """
    whole = question.candidates(identifier)
    shapes = {block: sorted(forms(block), key=lambda form: (-len(form), form)) for block in {c.block for c in whole}}
    if all(shape == [()] for shape in shapes.values()):
        return whole
    providers = question.providers(identifier)
    found = [
        (msgspec.structs.replace(each, form=form), size, place)
        for block, shape in shapes.items()
        for size, form in enumerate(shape)
        for place, each in enumerate(question.choices.here(block, form).candidates(identifier))
    ]
    found.sort(key=lambda c: (question.kept.get(c[0].block) != c[0].version, providers.index(c[0].block), *c[1:]))
    return [each for each, _, _ in found]


def _fits(
    question: Question,
    candidate: Candidate,
    asked: Sequence[Requirement],
    chosen: Mapping[str, Candidate],
    blocks: Mapping[str, Candidate],
) -> bool:
    """Whether nothing refuses a candidate: site, requirements on it, what it needs of what is chosen."""
    if not all(requirement.accepts(candidate) for requirement in asked) or not question.fits_site(candidate):
        return False
    same = blocks.get(candidate.block)
    if same is not None and (same.version, same.form) != (candidate.version, candidate.form):
        return False
    for _, _, requirement in question.needs(candidate):
        here = candidate if requirement.identifier == candidate.identifier else chosen.get(requirement.identifier)
        if here is not None and not requirement.accepts(here):
            return False
    return True
