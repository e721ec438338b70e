"""When nothing fits: which requirements clash, where each is said, and the nearest change that would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import resolvelib

from hpcgen.blocks.requirements import Candidate, Origin, Requirement, refusing_facts, version
from hpcgen.errors import ConflictError
from hpcgen.resolver.question import Question
from hpcgen.resolver.search import search


def conflict(question: Question, roots: Sequence[Requirement], causes: Iterable[Any]) -> ConflictError:
    """The error for a resolution that failed with resolvelib's ``causes``."""
    requirements = list(dict.fromkeys(cause.requirement for cause in causes))
    # The site's are not part of the search: what they rule out is left out of it from the start.
    for identifier in dict.fromkeys(r.identifier for r in list(requirements)):
        requirements += question.site_requirements(identifier)
    clash = _clash(question, requirements)
    said = [f"{_who(r)} {'allows' if r.origin.kind == 'site' else 'needs'} {_what(question, r)}" for r in clash]
    if len(clash) == 1:
        message = f"nothing known fits: {said[0]}"
        expected = _other_options(question, clash[0].identifier) or _known(question, clash[0].identifier)
    else:
        message = f"these cannot be combined: {'; '.join(said)}"
        expected = ""
    lasts = [line for requirement in clash for line in unsuited(question, requirement)]
    lasts += [line for requirement in clash for line in last_releases(question, requirement)]
    # A clash of the site's or of one alone is the cause; others may be what a search ended with far from it.
    seen = len(clash) == 1 or any(requirement.origin.kind == "site" for requirement in clash)
    fact = "" if seen else decisive_fact(question, roots)
    message = fact or "; ".join([message, *dict.fromkeys(lasts)])
    other = "widen one of the ranges, or add a release that fits all of them"
    if fact:
        other = "check that the profile is right about it, or choose another option or provider"
    remedy = nearest_change(question, roots) or other
    return ConflictError(message, expected=expected, remedy=remedy)


def _who(requirement: Requirement) -> str:
    place = requirement.origin.place()
    return f"{requirement.origin.text} ({place})" if place is not None else requirement.origin.text


def _what(question: Question, requirement: Requirement) -> str:
    if requirement.origin.kind == "site":
        fitting = [str(c) for c in question.candidates(requirement.identifier) if requirement.accepts(c)]
        if not fitting:
            return f"no known {requirement.identifier}"
        return f"only {', '.join(fitting[:6])}" + (" …" if len(fitting) > 6 else "")
    return str(requirement)


def unsuited(question: Question, requirement: Requirement) -> list[str]:
    """Providers that a requirement names and that cannot work at the site; of an MPI also which one the host has."""
    providers = question.catalog.virtuals.get(requirement.identifier, [])
    suited = question.providers(requirement.identifier)
    host, where = question.facts.mpi, ""
    if requirement.identifier == "mpi" and host is not None:
        place = question.place("mpi.abi")
        where = f", whose {host.flavour} {host.version} has the binary interface of {host.abi}"
        where += f" ({place})" if place is not None else ""
    names = [name for name in requirement.allowed or () if name in providers and name not in suited]
    return [f"{name} cannot work at this site{where}" for name in names]


def last_releases(question: Question, requirement: Requirement) -> list[str]:
    """For each fact of the node that ends a block's releases: the last one that the fact allows, in words."""
    facts = question.node_facts()
    lines = []
    for block in dict.fromkeys(c.block for c in question.candidates(requirement.identifier)):
        known = [c for c in question.candidates(requirement.identifier) if c.block == block]
        known.sort(key=lambda candidate: version(candidate.version), reverse=True)
        for name, (value, _) in facts.items():
            fitting = [c for c in known if name not in refusing_facts(question.release(c), facts)]
            if not fitting:
                lines.append(f"no known {block} supports {name} {value}")
            elif fitting[0] is not known[0]:
                lines.append(f"{fitting[0]} is the last that supports {name} {value}")
    return lines


def decisive_fact(question: Question, roots: Sequence[Requirement]) -> str:
    """The node's fact without which everything would fit, and what does not go with it; empty if there is none.

    A search that ends far from its cause shows requirements that clash only because everything else was tried.
    """
    for name, (value, path) in question.node_facts().items():
        without = msgspec.structs.replace(
            question, ignored=name, _candidates={}, _needs={}, _site={}, _bound={}, _fitting={}
        )
        try:
            chosen = list(search(without, roots).mapping.values())
        except (resolvelib.ResolutionImpossible, resolvelib.ResolutionTooDeep):
            continue
        facts = question.node_facts()
        refused = [c for c in chosen if name in refusing_facts(question.release(c), facts)]
        lasts = [line for c in refused for line in last_releases(question, Requirement(c.identifier, None, Origin("")))]
        place = question.place(path)
        where = f" ({place})" if place is not None else ""
        told = f"the node's {name} {value}{where} rules out {', '.join(map(str, refused))}, which the rest needs"
        return "; ".join([told, *dict.fromkeys(lasts)])
    return ""


def _clash(question: Question, requirements: Sequence[Requirement]) -> list[Requirement]:
    """The first pair of requirements on one thing that nothing satisfies; one alone if it accepts nothing."""
    for one in requirements:
        if not _fitting(question, [one]):
            return [one]
    for position, one in enumerate(requirements):
        for other in requirements[position + 1 :]:
            if one.identifier == other.identifier and not _fitting(question, [one, other]):
                return [one, other]
    return list(requirements)


def _fitting(question: Question, requirements: Sequence[Requirement]) -> list[Candidate]:
    candidates = question.candidates(requirements[0].identifier)
    return [c for c in candidates if all(r.accepts(c) for r in requirements)]


def _other_options(question: Question, identifier: str) -> str:
    """Where options leave no release: with which ones there are some."""
    refused: dict[str, list[str]] = {}
    for refusal in question.refusals(identifier):
        if refusal.reason.place:
            return ""
        refused.setdefault(refusal.reason.cause, []).append(str(refusal.candidate))
    if sum(map(len, refused.values())) < len(question.candidates(identifier)):
        return ""
    return "; ".join(
        f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {reason}" for reason, names in refused.items()
    )


def _known(question: Question, identifier: str) -> str:
    known = [str(c) for c in question.candidates(identifier)]
    return f"one of {', '.join(known[:12])}" + (" …" if len(known) > 12 else "") if known else ""


def nearest_change(question: Question, roots: Sequence[Requirement]) -> str:
    """The first single requirement of the stack or the command line without which everything fits."""
    for dropped in roots:
        if dropped.allowed is None:
            continue
        rest = [Requirement(r.identifier, None, r.origin) if r is dropped else r for r in roots]
        try:
            result = search(question, rest)
        except (resolvelib.ResolutionImpossible, resolvelib.ResolutionTooDeep):
            continue
        found = result.mapping.get(dropped.identifier)
        if found is not None:
            return f"without '{dropped}' of {_who(dropped)} it fits with {found}"
    return ""
