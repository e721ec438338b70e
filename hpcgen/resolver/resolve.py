"""site × stack → chosen blocks, in the order in which they are built, each with its reasons.

Pure and deterministic: the catalog is asked for classes and tables, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import resolvelib

from hpcgen.blocks.requirements import Candidate, Origin, Requirement, version
from hpcgen.model.plan import PlannedBlock
from hpcgen.model.reasons import Reason, Rule
from hpcgen.model.release import Release
from hpcgen.resolver.question import ALWAYS, Question
from hpcgen.resolver.search import roots_of, search


def resolve(question: Question) -> list[PlannedBlock]:
    """Choose every block and version; ConflictError names the requirements that clash."""
    roots = roots_of(question)
    try:
        result = search(question, roots)
    except resolvelib.ResolutionImpossible as failure:
        from hpcgen.resolver.conflicts import conflict

        raise conflict(question, roots, failure.causes) from failure
    return _planned(question, result)


def _planned(question: Question, result: Any) -> list[PlannedBlock]:
    chosen: dict[str, Candidate] = dict(result.mapping)
    order = build_order(question, chosen)
    kept = _runtime_identifiers(question, chosen)
    planned = []
    for identifier in order:
        candidate = chosen[identifier]
        cls = question.catalog.block(candidate.block)
        asked = [*result.criteria[identifier].iter_requirement(), *question.site_requirements(identifier)]
        needs = {name: chosen[r.identifier].block for name, _, r in question.needs(candidate)}
        planned.append(
            PlannedBlock(
                name=candidate.block,
                version=candidate.version,
                options=question.choices[candidate.block].as_data(),
                provides=list(cls.provides),
                needs=needs,
                host=_asked_of_host(question.catalog.releases(candidate.block)[candidate.version]),
                reasons=reasons(question, candidate, asked, chosen),
                build_only=identifier not in kept or cls.build_only,
                origin=question.catalog.block_origin(candidate.block),
            )
        )
    return planned


def _asked_of_host(release: Release) -> dict[str, str]:
    target = {"target": " ".join(release.targets)} if release.targets else {}
    return {**{str(name): versions for name, versions in release.host.items()}, **target}


def build_order(question: Question, chosen: Mapping[str, Candidate]) -> list[str]:
    """Identifiers in build order: what every image has first, then each need before what needs it."""
    order: list[str] = []

    def visit(identifier: str) -> None:
        if identifier in order:
            return
        for name, _, requirement in question.needs(chosen[identifier]):
            if requirement.identifier not in ALWAYS and requirement.identifier != identifier and name != identifier:
                visit(requirement.identifier)
        if identifier not in order:
            order.append(identifier)

    for name in ALWAYS:
        if name in chosen:
            order.append(name)
    for root in question.roots:
        if root.identifier in chosen:
            visit(root.identifier)
    for identifier in sorted(chosen):
        visit(identifier)
    return order


def _runtime_identifiers(question: Question, chosen: Mapping[str, Candidate]) -> set[str]:
    """Identifiers that the final stage needs: the roots, and what they need to run."""
    kept: set[str] = set()

    def keep(identifier: str) -> None:
        if identifier in kept or identifier not in chosen:
            return
        kept.add(identifier)
        for _, build_only, requirement in question.needs(chosen[identifier]):
            if not build_only:
                keep(requirement.identifier)

    for root in (*question.roots, *(Requirement(n, None, Origin("")) for n in ALWAYS)):
        keep(root.identifier)
    return kept


def reasons(
    question: Question, candidate: Candidate, asked: Sequence[Requirement], chosen: Mapping[str, Candidate]
) -> list[Reason | str]:
    """Why a candidate is there and why in this version."""
    found: list[Reason] = []
    for requirement in asked:
        origin = requirement.origin
        if origin.kind == "always":
            found.append(Reason(rule="always"))
        elif origin.kind == "site":
            found += origin.bounds
        else:
            found.append(_reason("asked", requirement))
    mine = version(candidate.version)
    known = [c for c in question.candidates(candidate.identifier) if c.block == candidate.block]
    newer = min((c for c in known if version(c.version) > mine), key=lambda c: version(c.version), default=None)
    last = Reason(rule="newest") if newer is None else _why_not(question, newer, asked, chosen)
    return [*(each for number, each in enumerate(found) if each not in found[:number]), last]


def _reason(rule: Rule, requirement: Requirement, found: str = "", newer: str = "") -> Reason:
    """What a requirement says, for the plan."""
    origin = requirement.origin
    return Reason(
        rule=rule,
        by=origin.by,
        by_version=origin.version,
        of=requirement.identifier,
        requires=None if requirement.allowed is None else dict(requirement.allowed),
        found=found,
        newer=newer,
        place=origin.path,
    )


def _why_not(
    question: Question, newer: Candidate, asked: Sequence[Requirement], chosen: Mapping[str, Candidate]
) -> Reason:
    """Why the next newer version was not taken: a fact, who refuses it, or what it needs itself."""
    number = newer.version
    for refusal in question.refusals(newer.identifier):
        if refusal.candidate == newer:
            return refusal.reason
    for requirement in asked:
        if not requirement.accepts(newer):
            return _reason("refused", requirement, newer=number)
    for _, _, requirement in question.needs(newer):
        here = chosen.get(requirement.identifier)
        if here is not None and not requirement.accepts(here):
            return _reason("needs", requirement, found=str(here), newer=number)
    if question.kept.get(newer.block) == chosen[newer.identifier].version:
        return Reason(rule="kept", newer=number)
    return Reason(rule="rest", newer=number)
