"""The same search where it takes trial: a SAT solver decides whether a plan exists with what was chosen so far.

A variable stands for each candidate that may come up. Of an identifier at most one is chosen; a candidate implies what
it needs. Every requirement holds under a switch of its own (*group*): a root, a range of the site, the needs of a
block on another. So a set of groups that clash by themselves can be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from hpcgen.blocks.requirements import Candidate, Form, Origin, Requirement
from hpcgen.core.support.sat import Solver
from hpcgen.planning.resolver.question import Question
from hpcgen.planning.resolver.search import Agenda, Circle, built_before, in_forms, in_order

PAIRWISE = 6
"""Up to so many variables exclude each other pair by pair; more do by a chain of further variables."""


def exact(question: Question, roots: Sequence[Requirement]) -> Exact:
    """The question as clauses, made once."""
    known: Exact | None = question.stated
    if known is None or known.roots is not roots:
        question.stated = known = Exact(question, roots)
    return known


class Exact:
    """A question as clauses.

    Proof obligations: a plan satisfies all clauses; what satisfies all clauses holds a plan, namely what can be
    reached from the roots; a group that is off rules nothing out.
    """

    def __init__(self, question: Question, roots: Sequence[Requirement]) -> None:
        self.question, self.roots = question, roots
        self.solver = Solver()
        self.groups: dict[int, list[Requirement]] = {}
        self.candidates: dict[str, list[Candidate]] = {}
        self.variable: dict[Candidate, int] = {}
        self.circles: dict[int, list[str]] = {}
        self._last = 0
        self._holds: dict[object, int] = {}
        self._before: dict[tuple[str, str], int] = {}
        self._reach()
        self._state()
        self._circular = self._may_be_circular()

    # what may come up

    def _reach(self) -> None:
        """All candidates that roots and needs lead to, in every form that is enough for somebody."""
        forms: dict[str, set[Form]] = {}
        fresh = list(self.roots)
        stale: dict[str, None] = {}
        while fresh:
            for requirement in fresh:
                stale |= dict.fromkeys(self._ask(requirement, forms))
            fresh = []
            while stale:
                identifier, _ = stale.popitem()
                self.candidates[identifier] = in_forms(self.question, identifier, lambda block: forms.get(block, {()}))
                for candidate in self.candidates[identifier]:
                    if candidate not in self.variable:
                        self.variable[candidate] = self.new_variable()
                        fresh += [need for _, _, need in self.question.needs(candidate) if need.demanded]

    def _ask(self, requirement: Requirement, forms: dict[str, set[Form]]) -> Iterator[str]:
        """Note the forms that are enough; the identifiers whose candidates are others then."""
        identifier, enough = requirement.identifier, requirement.enough or {}
        if identifier not in self.candidates:
            self.candidates[identifier] = []
            yield identifier
        for block in self.question.providers(identifier) if enough else ():
            here = forms.setdefault(block, {()})
            before = len(here)
            here.add(self.question.choices.form(block, enough))
            here |= {self.question.choices.form(block, dict(set(form) & set(enough.items()))) for form in here}
            if len(here) > before:
                # A block that stands for two virtuals has the same forms as both.
                yield from (v for v, names in self.question.catalog.virtuals.items() if block in names)
                yield identifier

    def new_variable(self) -> int:
        self._last += 1
        return self._last

    # clauses

    def _state(self) -> None:
        for identifier, known in self.candidates.items():
            self._at_most_one([self.variable[c] for c in known])
            for requirement in self.question.node.site_ranges(identifier):
                self._only(self._group(requirement), requirement)
            for requirement, refused in self.question.ruled_out(identifier, known):
                group = self._group(requirement)
                for candidate in refused:
                    self.solver.add_clause([-group, -self.variable[candidate]])
        for root in self.roots:
            group = self._group(root)
            self._only(group, root)
            if root.demanded:
                self.solver.add_clause([-group, *(self.variable[c] for c in self._accepted(root))])
        self._state_needs()
        self._one_of_each_block()

    def _state_needs(self) -> None:
        groups: dict[tuple[str, str], int] = {}
        for candidate, variable in self.variable.items():
            for _, _, requirement in self.question.needs(candidate):
                key = (candidate.block, requirement.identifier)
                if key not in groups:
                    groups[key] = self._group()
                self.groups[groups[key]].append(requirement)
                self.solver.add_clause([-groups[key], -variable, self.satisfied(requirement)])

    def _group(self, *requirements: Requirement) -> int:
        switch = self.new_variable()
        self.groups[switch] = list(requirements)
        return switch

    def _accepted(self, requirement: Requirement) -> Iterator[Candidate]:
        return (c for c in self.candidates[requirement.identifier] if requirement.accepts(c))

    def _only(self, group: int, requirement: Requirement) -> None:
        for candidate in self.candidates.get(requirement.identifier, ()):
            if not requirement.accepts(candidate):
                self.solver.add_clause([-group, -self.variable[candidate]])

    def satisfied(self, requirement: Requirement) -> int:
        """A variable that implies that one of the candidates is chosen that a requirement accepts.

        Of one that demands nothing: that none is which it does not accept.
        """
        allowed = None if requirement.allowed is None else tuple(sorted(requirement.allowed.items()))
        enough = None if requirement.enough is None else tuple(sorted(requirement.enough.items()))
        key = (requirement.identifier, allowed, enough, requirement.demanded)
        if key not in self._holds:
            self._holds[key] = self.new_variable()
            if requirement.demanded:
                self.solver.add_clause([-self._holds[key], *(self.variable[c] for c in self._accepted(requirement))])
            else:
                self._only(self._holds[key], requirement)
        return self._holds[key]

    def _at_most_one(self, variables: Sequence[int]) -> None:
        if len(variables) <= PAIRWISE:
            for one, other in combinations(variables, 2):
                self.solver.add_clause([-one, -other])
            return
        before = 0
        for variable in variables:
            chain = self.new_variable()
            self.solver.add_clause([-variable, chain])
            if before:
                self.solver.add_clause([-before, chain])
                self.solver.add_clause([-before, -variable])
            before = chain

    def _one_of_each_block(self) -> None:
        """A block that stands for two virtuals does so in one version and form."""
        same: dict[str, dict[tuple[str, Form], list[int]]] = {}
        identifiers: dict[str, set[str]] = {}
        for candidate, variable in self.variable.items():
            same.setdefault(candidate.block, {}).setdefault((candidate.version, candidate.form), []).append(variable)
            identifiers.setdefault(candidate.block, set()).add(candidate.identifier)
        for block, versions in same.items():
            if len(identifiers[block]) > 1:
                stands = []
                for variables in versions.values():
                    stands.append(self.new_variable())
                    for variable in variables:
                        self.solver.add_clause([-variable, stands[-1]])
                self._at_most_one(stands)

    # circles of needs, which cannot be built: stated when a plan with one comes up

    def _may_be_circular(self) -> bool:
        needed: dict[str, list[str]] = {}
        for candidate in self.variable:
            needed.setdefault(candidate.identifier, []).extend(built_before(self.question, candidate))
        try:
            in_order(needed, {one: list(dict.fromkeys(others)) for one, others in needed.items()})
        except Circle:
            return True
        return False

    def _forbid_circle(self) -> bool:
        """Rule out a circle that stands in the solver's model, in whatever versions; False where there is none."""
        true = set(self.solver.model())
        chosen = {c.identifier: c for c, variable in self.variable.items() if variable in true}
        try:
            in_order(chosen, {one: built_before(self.question, c) for one, c in chosen.items()})
        except Circle as circle:
            ring = circle.identifiers
            steps = [self._built_before(one, other) for one, other in zip(ring, [*ring[1:], ring[0]], strict=True)]
            group = self._group(*(requirement for _, needs in steps for requirement in needs))
            self.circles[group] = [chosen[one].block for one in ring]
            self.solver.add_clause([-group, *(-step for step, _ in steps)])
            return True
        return False

    def _built_before(self, identifier: str, other: str) -> tuple[int, list[Requirement]]:
        """A variable that holds where an identifier needs another one, and what its candidates ask of that."""
        asking = [
            (candidate, requirement)
            for candidate in self.candidates[identifier]
            for _, _, requirement in self.question.needs(candidate)
            if requirement.demanded and requirement.identifier == other
        ]
        if (identifier, other) not in self._before:
            self._before[identifier, other] = step = self.new_variable()
            for candidate, _ in asking:
                self.solver.add_clause([-self.variable[candidate], step])
        return self._before[identifier, other], [requirement for _, requirement in asking]

    # what is asked of it

    def solve(self, candidates: Iterable[Candidate] = (), groups: Iterable[int] | None = None) -> bool:
        """Whether there is a plan with these candidates under these groups, by default all."""
        wanted = [self.variable[c] for c in candidates]
        if groups is not None:
            return self.solver.solve([*groups, *wanted])
        while self.solver.solve([*self.groups, *wanted]):
            if not self._circular or not self._forbid_circle():
                return True
        return False

    def groups_without(self, origins: Iterable[Origin]) -> list[int]:
        """All groups but those of some roots."""
        off = {id(origin) for origin in origins}
        return [group for group, held in self.groups.items() if not any(id(each.origin) in off for each in held)]

    def circle(self) -> list[str]:
        """Blocks that need each other, where that alone stands in the way of a plan; else empty."""
        groups = [group for group in self.groups if group not in self.circles]
        if not self.circles or not self.solve(groups=groups) or self.solve():
            return []
        core = self.solver.core()
        return next(blocks for group, blocks in self.circles.items() if group in core)

    def best(self) -> Agenda | None:
        """The best candidate of each identifier with which a plan exists; None if there is none."""
        if not self.solve():
            return None
        agenda = Agenda(self.question, self.roots)
        true = set(self.solver.model())
        for identifier in agenda:
            chosen = list(agenda.chosen.values())
            for candidate in self.candidates[identifier]:
                if self.variable[candidate] in true:
                    break
                if self.solve([*chosen, candidate]):
                    true = set(self.solver.model())
                    break
            agenda.choose(candidate)
        return agenda
