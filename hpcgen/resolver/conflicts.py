"""When nothing fits: which requirements clash, where each is said, and the nearest change that would help."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpcgen.blocks.requirements import Candidate, Requirement, in_range, refusing_facts, version
from hpcgen.errors import ConflictError, InputError
from hpcgen.resolver.exact import exact
from hpcgen.resolver.question import Question
from hpcgen.resolver.search import search


def conflict(question: Question, roots: Sequence[Requirement]) -> ConflictError | InputError:
    """The error where there is no plan: requirements that clash by themselves, or blocks that need each other."""
    stated = exact(question, roots)
    if circle := stated.circle():
        return _circle_error(question, circle)
    clash, _ = stated.clash()
    # A block that is asked for is part of the clash even where no version is the other's range.
    clash = next(([each] for each in clash if not _fitting(question, each)), clash)
    said = [f"{_who(r)} {'allows' if r.origin.kind == 'site' else 'needs'} {_what(question, r)}" for r in clash]
    if len(clash) == 1:
        message = f"nothing known fits: {said[0]}"
        expected = _other_options(question, clash[0].identifier) or _known(question, clash[0])
    else:
        message = f"these cannot be combined: {'; '.join(said)}"
        expected = ""
    lasts = [line for requirement in clash for line in unsuited(question, requirement)]
    lasts += [line for requirement in clash for line in last_releases(question, requirement)]
    message = "; ".join([message, *dict.fromkeys(lasts)])
    other = "widen one of the ranges, or add a release that fits all of them"
    if any(bound.rule in ("fact", "vendor") for requirement in clash for bound in requirement.origin.bounds):
        other = "check that the profile is right about the node, or choose another option or provider"
    return ConflictError(message, expected=expected, remedy=nearest_change(question, roots, clash) or other)


def _circle_error(question: Question, blocks: Sequence[str]) -> InputError:
    circle = ", ".join(f"{one} needs {other}" for one, other in zip(blocks, [*blocks[1:], blocks[0]], strict=True))
    places = ", ".join(str(question.catalog.block_origin(name)) for name in blocks)
    return InputError(f"these blocks need each other: {circle}", where=places, remedy="take one of the needs out")


def _who(requirement: Requirement) -> str:
    place = requirement.origin.place()
    return f"{requirement.origin.text} ({place})" if place is not None else requirement.origin.text


def _what(question: Question, requirement: Requirement) -> str:
    if requirement.origin.kind == "site":
        fitting = [str(c) for c in _fitting(question, requirement)]
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


def _fitting(question: Question, requirement: Requirement) -> list[Candidate]:
    return [c for c in question.candidates(requirement.identifier) if requirement.accepts(c)]


def _other_options(question: Question, identifier: str) -> str:
    """Where options leave no release: with which ones there are some."""
    refused: dict[str, list[str]] = {}
    refusals = [question.refusal(candidate) for candidate in question.candidates(identifier)]
    for refusal in refusals:
        if refusal is None or refusal.reason.place:
            return ""
        refused.setdefault(refusal.reason.cause, []).append(str(refusal.candidate))
    return "; ".join(
        f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {reason}" for reason, names in refused.items()
    )


def _known(question: Question, requirement: Requirement) -> str:
    """The versions that there are; first a range that may be meant, where one version of it was named."""
    candidates = question.candidates(requirement.identifier)
    for block, versions in (requirement.allowed or {}).items():
        meant = f"{versions.removeprefix('==')}.*"
        if versions.startswith("==") and any(
            c.block == block and in_range(c.version, f"=={meant}") for c in candidates
        ):
            return f"{block} =={meant}, if any release of it will do"
    known = [str(c) for c in candidates]
    return f"one of {', '.join(known[:12])}" + (" …" if len(known) > 12 else "") if known else ""


def nearest_change(question: Question, roots: Sequence[Requirement], clash: Sequence[Requirement]) -> str:
    """The first single requirement of the stack or the command line without which everything fits."""
    for dropped in roots:
        if dropped.allowed is None or dropped not in clash:
            continue
        rest = [msgspec.structs.replace(r, allowed=None) if r is dropped else r for r in roots]
        found = search(question, rest)
        if found is not None and dropped.identifier in found.chosen:
            return f"without '{dropped}' of {_who(dropped)} it fits with {found.chosen[dropped.identifier]}"
    return ""
