"""One version for each package of a Python environment, by what blocks, files and packages require of one another.

Nearly always the first version of each that nobody forbids goes with all others. Where it does not, a SAT solver says
whether any versions do, takes of each package the first with which some do, or names the requirements that clash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_CONFLICTS = 8
"""Maximum number of contradictions that are told at once."""


class VersionCandidate(NamedTuple):
    """A version of a package.

    version: empty where a range decides, of which ``hpcgen lock`` or pip takes the newest.
    line: as a wheel list has it, with its hash; empty where nobody has one.
    listed: the list of a collection that has it, where that is none of the environment.
    """

    version: str
    line: str = ""
    listed: str = ""


class VersionRule(NamedTuple):
    """A range on a package.

    package: in its normal form.
    by: who says so: a block with its version, a package with its version.
    place: the line of the user's file that says so, if one does.
    of: the package and version that requires it; None if it holds whatever is chosen.
    block: of these, the block with its version that brings it, if one does.
    of_python: it is the range of releases that have wheels for the Python, which is then who says so.
    """

    package: str
    specifier: SpecifierSet
    by: str
    place: str = ""
    of: tuple[str, str] | None = None
    block: str = ""
    of_python: bool = False

    def allows(self, candidate: VersionCandidate) -> bool:
        return not candidate.version or _contains(self.specifier, candidate.version)

    def holds(self, chosen: Mapping[str, VersionCandidate]) -> bool:
        """Whether it counts beside what was chosen."""
        return self.of is None or (self.of[0] in chosen and chosen[self.of[0]].version == self.of[1])


VersionCandidates = Mapping[str, Sequence[VersionCandidate]]
Chosen = dict[str, VersionCandidate]


@lru_cache(maxsize=65536)
def _contains(specifier: SpecifierSet, version: str) -> bool:
    return specifier.contains(version, prereleases=True)


def joint_range(package: str, chosen: Mapping[str, VersionCandidate], rules: Sequence[VersionRule]) -> SpecifierSet:
    """All that counts for a package beside the versions chosen of the others."""
    from packaging.specifiers import SpecifierSet

    found = SpecifierSet()
    for rule in rules:
        if rule.package == package and rule.holds(chosen):
            found &= rule.specifier
    return found


def can_hold(specifier: SpecifierSet) -> bool:
    """Whether a version is conceivable that lies in a range; whether it was ever released is another matter."""
    from packaging.version import Version

    points = {"0", "0.0.1"}
    for each in specifier:
        if each.operator == "===":
            points.add(each.version)
            continue
        version = Version(each.version.removesuffix(".*"))
        release = list(version.release)
        above = [*release[:-1], release[-1] + 1]
        points |= {str(version), ".".join(map(str, above)), ".".join(map(str, [*release, 0, 0, 1]))}
    return any(specifier.contains(point, prereleases=True) for point in points)


def straight(candidates: VersionCandidates, rules: Sequence[VersionRule]) -> Chosen | None:
    """The first candidate of each package that no lasting rule forbids; None if these do not go together."""
    lasting: dict[str, list[VersionRule]] = {}
    for rule in rules:
        if rule.of is None:
            lasting.setdefault(rule.package, []).append(rule)
    chosen: Chosen = {}
    for name, several in candidates.items():
        fitting = [each for each in several if all(rule.allows(each) for rule in lasting.get(name, ()))]
        if not fitting:
            return None
        chosen[name] = fitting[0]
    if not all(rule.allows(chosen[rule.package]) for rule in rules if rule.holds(chosen)):
        return None
    left_open = [name for name, each in chosen.items() if not each.version]
    return chosen if all(can_hold(joint_range(name, chosen, rules)) for name in left_open) else None


def exact(candidates: VersionCandidates, rules: Sequence[VersionRule]) -> Chosen | list[list[VersionRule]]:
    """Of each package, in their order, the first candidate with which any choice exists; else what clashes.

    Each clash is a set of rules none of which can be left out of it.
    """
    return _Clauses(candidates, rules).answer()


class _Clauses:
    """The question as clauses: a variable for each candidate, and one for each rule, under which the rule holds."""

    def __init__(self, candidates: VersionCandidates, rules: Sequence[VersionRule]) -> None:
        from hpcgen.core.support.sat import Solver

        self.candidates, self.rules = candidates, rules
        self.solver = Solver()
        self.variable: dict[tuple[str, VersionCandidate], int] = {}
        for name, several in candidates.items():
            numbers = [self.variable.setdefault((name, each), len(self.variable) + 1) for each in several]
            self.solver.add_clause(numbers)
            for pair in combinations(numbers, 2):
                self.solver.add_clause(-each for each in pair)
        self.switch = {len(self.variable) + 1 + at: rule for at, rule in enumerate(rules)}
        for switch, rule in self.switch.items():
            allowed = [self.variable[rule.package, each] for each in candidates[rule.package] if rule.allows(each)]
            for condition in self._conditions(rule):
                self.solver.add_clause([-switch, *condition, *allowed])

    def _conditions(self, rule: VersionRule) -> Iterator[list[int]]:
        """The opposite of what a rule rests on, for each candidate that brings it; one empty list if nothing."""
        if rule.of is None:
            yield []
            return
        name, version = rule.of
        for each in self.candidates[name]:
            if each.version == version:
                yield [-self.variable[name, each]]

    def answer(self) -> Chosen | list[list[VersionRule]]:
        while self.solver.solve(self.switch):
            chosen = self._preferred()
            empty = [name for name, each in chosen.items() if not each.version and not self._holds_any(name, chosen)]
            if not empty:
                return chosen
            for name in empty:
                self._exclude(name, chosen)
        return list(self._clashes())

    def _preferred(self) -> Chosen:
        fixed = list(self.switch)
        chosen = {}
        for name, several in self.candidates.items():
            for each in several:
                if self.solver.solve([*fixed, self.variable[name, each]]):
                    chosen[name] = each
                    break
            fixed.append(self.variable[name, chosen[name]])
        return chosen

    def _holds_any(self, name: str, chosen: Chosen) -> bool:
        return can_hold(joint_range(name, chosen, self.rules))

    def _exclude(self, name: str, chosen: Chosen) -> None:
        """Not left open beside rules that together allow nothing; of them no more than that takes."""
        together = {switch: rule for switch, rule in self.switch.items() if rule.package == name and rule.holds(chosen)}
        for switch in list(together):
            fewer = [rule for each, rule in together.items() if each != switch]
            if not can_hold(joint_range(name, chosen, fewer)):
                del together[switch]
        clause = {-self.variable[name, chosen[name]], *(-switch for switch in together)}
        clause |= {-self.variable[rule.of[0], chosen[rule.of[0]]] for rule in together.values() if rule.of is not None}
        self.solver.add_clause(sorted(clause))

    def _clashes(self) -> Iterator[list[VersionRule]]:
        """Contradictions that share no requirement of the user, or nothing at all, with an earlier one."""
        active = dict(self.switch)
        for _ in range(_CONFLICTS):
            if all(self.solver.solve(part) for part in self._by_weight(active)):
                return
            core = self._thinned([each for each in self.solver.core() if each in active])
            yield [self.switch[each] for each in core]
            own = [each for each in core if self.switch[each].place] or core
            for each in own:
                del active[each]

    def _by_weight(self, active: Mapping[int, VersionRule]) -> Iterator[list[int]]:
        """More and more of the rules: a contradiction among the first says more to people.

        First what they ask for and what packages require of which there is one version, then what any version requires,
        and at last which wheels there are for a Python.
        """
        lasting = [rule for rule in active.values() if rule.of is None]

        def weight(rule: VersionRule) -> int:
            if rule.of is None:
                return 2 if rule.of_python else 0
            own = [each for each in lasting if each.package == rule.of[0]]
            return int(sum(all(each.allows(one) for each in own) for one in self.candidates[rule.of[0]]) > 1)

        for most in range(3):
            yield [switch for switch, rule in active.items() if weight(rule) <= most]

    def _thinned(self, core: Sequence[int]) -> list[int]:
        needed = list(core)
        for each in core:
            fewer = [other for other in needed if other != each]
            if not self.solver.solve(fewer):
                needed = fewer
        return sorted(needed)
