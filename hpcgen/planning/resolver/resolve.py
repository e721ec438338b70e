"""Site × stack → chosen blocks in build order, each with its reasons.

Pure and deterministic: the catalog is asked for classes and tables, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from hpcgen.blocks.requirements import Candidate, Requirement, version
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.reasons import Reason, Rule
from hpcgen.core.model.release import Release
from hpcgen.planning.resolver.question import ALWAYS, Question
from hpcgen.planning.resolver.search import Chosen, build_order, search


class NoPlanError(ConflictError):
    """No plan exists. What clashes takes longer to say, so ``clash`` does where somebody wants to know.

    ``first``: what was wrong with a choice that was made before some releases were ruled out beside each other.
    """

    first: HpcgenError | None = None

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(
            "no choice of versions meets all requests",
            remedy="`hpcgen plan` shows which requirements clash, and possible remedies",
        )


def resolve(question: Question) -> list[PlannedBlock]:
    """Choose every block and version; NoPlanError where nothing fits."""
    roots = question.all_roots()
    found = search(question, roots)
    if found is None:
        raise NoPlanError(question)
    chosen = found.chosen
    kept = {chosen[identifier].block for identifier in _runtime_identifiers(question, chosen)}
    planned: dict[str, PlannedBlock] = {}
    for identifier in build_order(question, chosen):
        candidate = chosen[identifier]
        if candidate.block in planned:
            continue
        cls = question.catalog.block(candidate.block)
        asked = [*found.asked[identifier], *question.site_requirements(identifier, candidate)]
        planned[candidate.block] = PlannedBlock(
            name=candidate.block,
            version=candidate.version,
            options=question.here(candidate).choice_for(candidate.version).as_data(),
            provides=list(cls.provides),
            needs={name: chosen[r.identifier].block for name, _, r in question.needs(candidate) if r.demanded},
            host=_asked_of_host(question.release(candidate)),
            reasons=reasons(question, candidate, asked, chosen),
            build_only=cls.build_only or candidate.block not in kept,
            origin=question.catalog.recorded_origin(candidate.block),
        )
    return list(planned.values())


def _asked_of_host(release: Release) -> dict[str, str]:
    target = {"target": " ".join(release.targets)} if release.targets else {}
    return {**{str(name): versions for name, versions in release.host.items()}, **target}


def _runtime_identifiers(question: Question, chosen: Mapping[str, Candidate]) -> set[str]:
    """Identifiers that the final stage needs: the roots, and what they need to run."""
    kept: set[str] = set()
    open_ = [*(root.identifier for root in question.roots if root.demanded), *ALWAYS]
    while open_:
        identifier = open_.pop()
        if identifier in kept or identifier not in chosen:
            continue
        kept.add(identifier)
        needed = question.needs(chosen[identifier])
        open_ += [r.identifier for _, build_only, r in needed if r.demanded and not build_only]
    return kept


# Why a block is in a plan and why it is not the next newer version: facts, and requirements of chosen blocks.


def reasons(
    question: Question, candidate: Candidate, asked: Sequence[Requirement], chosen: Chosen
) -> list[Reason | str]:
    """Why a candidate is there and why in this version."""
    found: list[Reason] = []
    for requirement in asked:
        origin = requirement.origin
        if origin.kind == "always":
            found.append(Reason(rule="always"))
        elif origin.kind == "site":
            # What an option of another provider rules out says nothing of this one.
            bounded = bool((requirement.allowed or {}).get(candidate.block))
            found += [bound for bound in origin.bounds if bounded or bound.rule != "option"]
        elif not origin.bounds:
            found.append(_reason("asked", requirement))
    mine = version(candidate.version)
    known = [c for c in question.candidates(candidate.identifier) if c.block == candidate.block]
    newer = min((c for c in known if version(c.version) > mine), key=lambda c: version(c.version), default=None)
    last = Reason(rule="newest") if newer is None else _why_not(question, newer, asked, chosen)
    return [*(each for number, each in enumerate(found) if each not in found[:number]), last]


def _reason(rule: Rule, requirement: Requirement, found: str = "", newer: str = "") -> Reason:
    """A requirement as a reason of the plan."""
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


def _refused(rule: Rule, requirement: Requirement, found: str = "", newer: str = "") -> Reason:
    """Why a requirement refuses a newer version; Python packages say it themselves."""
    bounds = requirement.origin.bounds
    own = bounds[0] if bounds and bounds[0].rule == "not beside" else _reason(rule, requirement, found)
    return msgspec.structs.replace(own, newer=newer)


def _why_not(question: Question, newer: Candidate, asked: Sequence[Requirement], chosen: Chosen) -> Reason:
    """Why not the next newer version: facts, earlier choices, or a preference."""
    number = newer.version
    here = chosen[newer.identifier]
    newer = msgspec.structs.replace(newer, form=here.form)
    for refusal in question.here(newer).default_refusals(newer):
        return refusal.reason
    for requirement in asked:
        if not requirement.accepts(newer):
            return _refused("refused", requirement, newer=number)
    before = dict(islice(chosen.items(), list(chosen).index(newer.identifier)))
    for _, _, requirement in question.needs(newer):
        other = before.get(requirement.identifier)
        if other is not None and not requirement.accepts(other):
            return _refused("needs", requirement, str(other), number)
    order = [(c.block, c.version) for c in question.candidates(newer.identifier)]
    if order.index((newer.block, newer.version)) > order.index((here.block, here.version)):
        if question.kept.get(here.block) == here.version:
            return Reason(rule="kept", newer=number)
        if why := question.release(newer).not_default:
            return Reason(rule="not default", found=why, newer=number)
        on, base = dict(question.release(newer).on), chosen["base"]
        if base.block in on:
            # The order is that of all bases, also where the first of them was ruled out by something else.
            base = next((each for each in question.candidates("base") if each.block not in on), base)
        return Reason(rule="preferred", of="base", requires=on, found=str(base), newer=number)
    return Reason(rule="rest", newer=number, clash=_clash(question, newer, list(before.values())))


def _clash(question: Question, newer: Candidate, before: list[Candidate]) -> list[Reason]:
    """Requirements that clash with a version, given what was chosen before it."""
    from hpcgen.planning.resolver.clash import clash
    from hpcgen.planning.resolver.exact import exact

    found = clash(exact(question, question.all_roots()), [*before, newer])
    said: list[Reason] = []
    for each in found.requirements:
        said += each.origin.bounds or [_reason("asked", each)]
    others = [c for c in found.candidates if c != newer]
    return [*said, *(Reason(rule="chosen", by=c.block, by_version=c.version) for c in others)]
