"""If nothing fits: minimal sets of requirements and candidates that clash, and their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from hpcgen.backends.hardware.mpi_abi import wanted_abi, whose
from hpcgen.blocks.requirements import Candidate, Requirement, refusing_facts, version
from hpcgen.core.errors import InputError
from hpcgen.planning.resolver.exact import Exact, exact
from hpcgen.planning.resolver.question import Question

THINNED = 500
"""Up to so many requirements of blocks are tried for whether the clash takes each."""
ORDER = ("set", "stack", "file", "site", "always", "block")


class Clash(msgspec.Struct, frozen=True):
    """Requirements, the user's first, and candidates that exclude each other."""

    requirements: list[Requirement]
    candidates: list[Candidate]


def clash(stated: Exact, candidates: Sequence[Candidate] = ()) -> Clash:
    """The clash with these candidates, or without candidates the clash that excludes any plan.

    Without any of the requirements and candidates the others fit together. What versions of a block ask alike counts as
    one requirement.
    """
    return _Thinning(stated).clash(candidates)


class _Thinning:
    def __init__(self, stated: Exact) -> None:
        self.stated = stated
        self.texts: dict[int, list[Requirement]] = {}

    def clash(self, candidates: Sequence[Candidate]) -> Clash:
        stated = self.stated
        core = set(stated.solver.core()) if not stated.solve(candidates) else set()
        groups = [group for group in stated.groups if group in core]
        kept = [c for c in candidates if stated.variable[c] in core]
        for candidate in list(kept):
            rest = [c for c in kept if c != candidate]
            if not stated.solve(rest, groups):
                kept = rest
        # Circles and those of the tables first, so that what the user said stays where either would do.
        groups.sort(key=lambda group: (group not in stated.circles, len(stated.groups[group]) == 1))
        apart = [part for group in sorted(self._thinned(groups, kept)) for part in self._taken_apart(group)]
        if len(apart) <= THINNED:
            apart = self._thinned(apart, kept)
        told: dict[tuple[str, str], Requirement] = {}
        for each in (each for switch in apart for each in self._shown(switch, apart, kept)):
            told.setdefault((each.origin.by, str(each)), each)
        return Clash(sorted(told.values(), key=lambda each: ORDER.index(each.origin.kind)), kept)

    def _thinned(self, groups: Sequence[int], beside: Sequence[Candidate]) -> list[int]:
        left = list(groups)
        for group in groups:
            rest = [each for each in left if each != group]
            if not self.stated.solve(beside, rest):
                left = rest
        return left

    def _taken_apart(self, group: int) -> list[int]:
        """A switch for each text of what the versions of a block ask of another; other groups as they are."""
        held = self.stated.groups[group]
        if group in self.stated.circles or held[0].origin.kind != "block":
            return [group]
        by_text: dict[str, int] = {}
        for requirement in held:
            switch = by_text.setdefault(str(requirement), 0) or self.stated.new_variable()
            by_text[str(requirement)] = switch
            self.texts.setdefault(switch, []).append(requirement)
            asking = self.stated.variable[self._asking[id(requirement)]]
            self.stated.solver.add_clause([-switch, -asking, self.stated.satisfied(requirement)])
        return list(by_text.values())

    @cached_property
    def _asking(self) -> Mapping[int, Candidate]:
        """The versions that have each requirement of a block."""
        return {id(need): c for c in self.stated.variable for _, _, need in self.stated.question.needs(c)}

    def _shown(self, switch: int, among: Sequence[int], beside: Sequence[Candidate]) -> list[Requirement]:
        """Of the versions that ask alike one that the rest of the clash leaves."""
        alike = self.texts.get(switch)
        if alike is None:
            return self.stated.groups[switch]
        rest = [each for each in among if each != switch]
        left = (each for each in alike if self.stated.solve([*beside, self._asking[id(each)]], rest))
        return [next(left, alike[0])]


# If nothing fits: the clashing requirements, the place of each, and the releases that the site allows.

SHOWN = 6
"""So many releases of one block are listed; of more the number is told."""


def clash_of(question: Question) -> list[Requirement]:
    """Requirements that clash by themselves, where there is no plan.

    InputError: only blocks that need each other stand in the way.
    """
    stated = exact(question, question.all_roots())
    if circle := stated.circle():
        raise _circle_error(question, circle)
    found = clash(stated).requirements
    # What the user asks for and nothing meets is the mistake, though it takes somebody who needs the block to clash.
    said = (each for each in found if each.origin.kind in ("set", "stack", "file"))
    return next(([each] for each in said if not fitting(question, each)), found)


def _circle_error(question: Question, blocks: Sequence[str]) -> InputError:
    circle = ", ".join(f"{one} needs {other}" for one, other in zip(blocks, [*blocks[1:], blocks[0]], strict=True))
    places = ", ".join(str(question.catalog.block_origin(name)) for name in blocks)
    return InputError(f"these blocks need each other: {circle}", where=places, remedy="take one of the needs out")


def told(question: Question, clashing: Sequence[Requirement]) -> str:
    """The clash in words, a line for each requirement, and the releases that the site allows."""
    said = list(_lines(question, clashing))
    more = [*_unlisted(question, clashing)]
    more += [line for requirement in clashing for line in unsuited(question, requirement)]
    more += [line for requirement in clashing for line in last_releases(question, requirement)]
    first = f"no known release fits: {said.pop()}" if len(clashing) == 1 else "these cannot be combined:"
    return "\n  - ".join([first, *said, *dict.fromkeys(more)])


def _lines(question: Question, clashing: Sequence[Requirement]) -> Iterator[str]:
    of_block: dict[str, int] = {}
    for each in clashing:
        by = each.origin.by if each.origin.kind == "block" else ""
        of_block[by] = of_block.get(by, 0) + 1
        if not by or of_block[by] <= SHOWN:
            if one := _of_one(question, each, clashing):
                yield one
                continue
            if each.origin.kind != "site" and each.origin.bounds:
                yield from (bound.found for bound in each.origin.bounds)
                continue
            words = {"site": "with {}: {}", "block": "{} needs {}"}.get(each.origin.kind, "{} asks for {}")
            if each.origin.why:
                words = "{} only works with {}: " + each.origin.why.replace("{", "{{").replace("}", "}}")
            yield words.format(_who(each), _what(question, each))
    for by, number in of_block.items():
        if by and number > SHOWN:
            yield f"and {number - SHOWN} more releases of {by}"


def _meant(question: Question, identifier: str, clashing: Sequence[Requirement]) -> list[Candidate]:
    """The candidates that what the user said of an identifier leaves; none where he said nothing."""
    said = [each for each in clashing if each.identifier == identifier and each.origin.kind in ("set", "stack", "file")]
    return [c for c in question.candidates(identifier) if said and all(each.accepts(c) for each in said)]


def _of_one(question: Question, requirement: Requirement, clashing: Sequence[Requirement]) -> str:
    """Why the node or an option rules out the one release that is meant; empty where several are."""
    meant = _meant(question, requirement.identifier, clashing)
    if requirement.origin.kind != "site" or len(meant) != 1:
        return ""
    for refusal in question.refusals(meant[0]):
        reason = refusal.reason
        if refusal.bound in requirement.origin.bounds:
            place = question.node.place(reason.place) if reason.place else None
            here = f", and here that is {reason.found}" if reason.rule == "option" else ""
            return f"{meant[0]}: {reason.cause}{here}" + (f" ({place})" if place is not None else "")
    return ""


def _unlisted(question: Question, clashing: Sequence[Requirement]) -> Iterator[str]:
    """What else there is of the releases that are meant, by their tables."""
    for identifier in dict.fromkeys(each.identifier for each in clashing if each.origin.kind == "site"):
        for candidate in _meant(question, identifier, clashing):
            here = question.here(candidate)
            options = here.choice.as_data()
            for each in here.rows[candidate.version].unlisted:
                fits = all(str(options.get(name)) in values for name, values in each.only.items())
                if fits and (not each.architectures or question.facts.architecture in each.architectures):
                    yield each.message


def _who(requirement: Requirement) -> str:
    place = requirement.origin.place()
    return f"{requirement.origin.text} ({place})" if place is not None else requirement.origin.text


def _what(question: Question, requirement: Requirement) -> str:
    if requirement.origin.kind == "site":
        names = [str(c) for c in fitting(question, requirement)]
        if not names:
            return f"no known {requirement.identifier}"
        return f"only {', '.join(names[:6])}" + (" …" if len(names) > 6 else "")
    return str(requirement)


def unsuited(question: Question, requirement: Requirement) -> list[str]:
    """Providers that a requirement names and that cannot work at the site; of an MPI also which one the host has."""
    providers = question.catalog.virtuals.get(requirement.identifier, [])
    suited = question.providers(requirement.identifier)
    host, where = question.facts.mpi, ""
    if requirement.identifier == "mpi" and host is not None:
        place, abi = question.node.place("mpi.abi"), whose(wanted_abi(host))
        where = f", whose {host.flavour} {host.version} has the binary interface of {abi}"
        where += f" ({place})" if place is not None else ""
    names = [name for name in requirement.allowed or () if name in providers and name not in suited]
    return [f"{name} cannot work at this site{where}" for name in names]


def last_releases(question: Question, requirement: Requirement) -> list[str]:
    """For each fact of the node that ends a block's releases: the last one that the fact allows, in words."""
    facts = question.node.known
    lines = []
    for block in dict.fromkeys(c.block for c in question.candidates(requirement.identifier)):
        known = [
            c
            for c in question.candidates(requirement.identifier)
            if c.block == block and question.here(c).for_gpu(c.version)
        ]
        known.sort(key=lambda candidate: version(candidate.version), reverse=True)
        none, last = [], []
        for name, (value, _) in facts.items() if known else ():
            fitting = [c for c in known if name not in refusing_facts(question.release(c), facts)]
            if not fitting:
                none.append(f"no known {block} supports {name} {value}")
            elif fitting[0] is not known[0]:
                last.append(f"{fitting[0]} is the last that supports {name} {value}")
        # Where one fact leaves nothing, the others do not matter.
        lines += none or last
    return lines


def fitting(question: Question, requirement: Requirement) -> list[Candidate]:
    """The candidates that a requirement accepts, whatever else there is."""
    return [c for c in question.candidates(requirement.identifier) if requirement.accepts(c)]


def known(question: Question, requirement: Requirement) -> str:
    """The versions that there are, where a requirement asks for another one."""
    every = question.candidates(requirement.identifier)
    names = [str(c) for c in every if c.block in (requirement.allowed or ())] or [str(c) for c in every]
    return f"one of {', '.join(names[:12])}" + (" …" if len(names) > 12 else "") if names else ""
