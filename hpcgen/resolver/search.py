"""The search itself: resolvelib over block releases, needs, virtuals and the site's facts.

Identifiers are chosen by their place in the stack, then the base, then by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import resolvelib

from hpcgen.blocks.requirements import Candidate, Origin, Requirement
from hpcgen.resolver.question import ALWAYS, Question


class _Provider(resolvelib.AbstractProvider[Requirement, Candidate, str]):
    """resolvelib's view of a question."""

    def __init__(self, question: Question) -> None:
        self.question = question
        order = [root.identifier for root in question.roots if root.identifier not in ALWAYS]
        self.order = {name: position for position, name in reversed(list(enumerate(order)))}

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        return requirement_or_candidate.identifier

    def get_preference(self, identifier: str, *args: Any, **kwargs: Any) -> Any:
        # What the stack names is chosen first, so that it is the newest. Then the base, because it decides at once
        # which compilers and Pythons there are, and these: chosen last, a base would be found wrong only after a
        # long search.
        first = identifier in self.order
        rank = 0 if identifier in ALWAYS else 1 if self.question.bound_to_base(identifier) else 2
        return not first, self.order.get(identifier, 0), rank, identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Iterable[Candidate]:
        asked = list(requirements[identifier])
        bad = set(incompatibilities[identifier])
        return [c for c in self.question.fitting(identifier) if c not in bad and all(r.accepts(c) for r in asked)]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return requirement.accepts(candidate)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        return [requirement for _, _, requirement in self.question.needs(candidate)]


def roots_of(question: Question) -> list[Requirement]:
    """The stack's requirements, and what every image has."""
    always = [Requirement(name, None, Origin("every image", kind="always")) for name in ALWAYS]
    return [*question.roots, *always]


def search(question: Question, roots: Sequence[Requirement]) -> Any:
    """resolvelib's result; raises resolvelib.ResolutionImpossible."""
    resolver: Any = resolvelib.Resolver(_Provider(question), resolvelib.BaseReporter())
    return resolver.resolve(roots, max_rounds=2000)
