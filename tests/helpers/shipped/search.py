"""Whether there is a plan, and the one that is meant: what cannot be is struck out, then candidates are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.helpers.shipped.problem import Asked, Bound, Candidate, Problem, Refused

Chosen = dict[str, Candidate]
MOST_TRIALS = 100_000


class Everything:
    """All that holds. Subclasses leave something out."""

    def asks(self, asked: Asked) -> bool:
        return True

    def bounds(self, name: str, bound: Bound) -> bool:
        return True

    def refuses(self, candidate: Candidate, refused: Refused) -> bool:
        return True


@dataclass(frozen=True)
class _Kind:
    """Candidates of an identifier that ask for the same."""

    members: int
    needs: tuple[tuple[str, int], ...]


class Search:
    """The search among candidates, each a bit of its identifier's number, under all that ``holds``."""

    def __init__(self, problem: Problem, holds: Everything | None = None) -> None:
        self.problem, self.holds = problem, holds or Everything()
        self._start: dict[str, int] = {}
        self._kinds: dict[str, list[_Kind]] = {}
        self._trials = 0

    def best(self) -> Chosen | None:
        """The plan that is meant, in the order of choice."""
        domains, demanded = self._begin({})
        roots = {root.of for root in self.problem.roots if root.demanded}
        return self._best(domains, demanded, {}, roots) if self._strike(domains, demanded) else None

    def exists(self, fixed: Mapping[str, Candidate] | None = None) -> bool:
        """Whether there is a plan with these candidates."""
        domains, demanded = self._begin(fixed or {})
        return self._strike(domains, demanded) and self._any(domains, demanded)

    # what there is

    def _begin(self, fixed: Mapping[str, Candidate]) -> tuple[dict[str, int], set[str]]:
        domains: dict[str, int] = {}
        self._fixed = fixed
        for name in fixed:
            self._domain(domains, name)
        demanded = set(fixed)
        for root in self.problem.roots:
            if self.holds.asks(root) and root.demanded:
                self._domain(domains, root.of)
                demanded.add(root.of)
        return domains, demanded

    def _domain(self, domains: dict[str, int], name: str) -> int:
        """What the site and the roots leave of an identifier."""
        if name not in domains:
            if name not in self._start:
                self._start[name] = self._first(name)
            fixed = self._fixed.get(name)
            one = -1 if fixed is None else 1 << self.problem.candidates(name).index(fixed)
            domains[name] = self._start[name] & one
        return domains[name]

    def _first(self, name: str) -> int:
        problem, left = self.problem, 0
        bounds = [bound for bound in problem.bounds(name) if self.holds.bounds(name, bound)]
        for position, candidate in enumerate(problem.candidates(name)):
            inside = all(
                Asked("", "", "", name, ((bound.block, bound.versions),), None).takes(candidate)
                for bound in bounds
                if bound.block == candidate.block
            )
            if inside and not any(self.holds.refuses(candidate, each) for each in problem.refusals(candidate)):
                left |= 1 << position
        for root in problem.roots:
            if root.of == name and self.holds.asks(root):
                left &= problem.mask(root)
        return left

    def _kinds_of(self, name: str) -> list[_Kind]:
        if name not in self._kinds:
            found: dict[tuple[tuple[str, int], ...], int] = {}
            for position, candidate in enumerate(self.problem.candidates(name)):
                needs: dict[str, int] = {}
                for asked in self.problem.needs(candidate):
                    if self.holds.asks(asked):
                        needs[asked.of] = needs.get(asked.of, -1) & self.problem.mask(asked)
                key = tuple(sorted(needs.items()))
                found[key] = found.get(key, 0) | 1 << position
            self._kinds[name] = [_Kind(members, needs) for needs, members in found.items()]
        return self._kinds[name]

    # what cannot be

    def _strike(self, domains: dict[str, int], demanded: set[str]) -> bool:
        """Strike out candidates whose needs nothing meets, until there are none; False where nothing is left."""
        again = True
        while again:
            again = False
            for name in list(demanded):
                left = self._struck(domains, name)
                if left is None:
                    return False
                keep, certain = left
                again |= keep != domains[name]
                domains[name] = keep
                for other, mask in certain.items():
                    here = self._domain(domains, other)
                    if not here & mask:
                        return False
                    again |= other not in demanded or here & mask != here
                    domains[other] = here & mask
                    demanded.add(other)
        return True

    def _struck(self, domains: dict[str, int], name: str) -> tuple[int, dict[str, int]] | None:
        """What is left of an identifier, and what all of that need."""
        keep = 0
        certain: dict[str, int] | None = None
        for kind in self._kinds_of(name):
            here = domains[name] & kind.members
            if here and all(self._domain(domains, other) & mask for other, mask in kind.needs):
                keep |= here
                needs = dict(kind.needs)
                if certain is None:
                    certain = needs
                else:
                    certain = {other: mask | needs[other] for other, mask in certain.items() if other in needs}
        return (keep, certain or {}) if keep else None

    # trial

    def _with(
        self, domains: dict[str, int], demanded: Iterable[str], name: str, bit: int
    ) -> tuple[dict[str, int], set[str]] | None:
        self._trials += 1
        assert self._trials < MOST_TRIALS, f"too many trials: {self.problem.question}"
        narrowed, wanted = {**domains, name: bit}, {*demanded, name}
        return (narrowed, wanted) if self._strike(narrowed, wanted) else None

    def _best(self, domains: dict[str, int], demanded: set[str], chosen: Chosen, needed: set[str]) -> Chosen | None:
        pending = needed - chosen.keys()
        if not pending:
            return chosen
        name = min(pending, key=self._rank)
        for position, candidate in enumerate(self.problem.candidates(name)):
            bit = 1 << position
            after = self._with(domains, demanded, name, bit) if domains[name] & bit else None
            if after is not None:
                more = {asked.of for asked in self.problem.needs(candidate)}
                found = self._best(*after, {**chosen, name: candidate}, needed | more)
                if found is not None:
                    return found
        return None

    def _rank(self, name: str) -> tuple[object, ...]:
        return self.problem.rank(name)

    def _any(self, domains: dict[str, int], demanded: set[str]) -> bool:
        unsure = [name for name in demanded if domains[name].bit_count() > 1]
        if not unsure:
            return True
        name = min(unsure, key=lambda each: domains[each].bit_count())
        left = domains[name]
        while left:
            bit = left & -left
            left ^= bit
            after = self._with(domains, demanded, name, bit)
            if after is not None and self._any(*after):
                return True
        return False
