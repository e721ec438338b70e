"""site × stack → chosen blocks, in the order in which they are built, each with its reasons.

Pure and deterministic: the catalog is asked for classes and tables, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpcgen.blocks.requirements import Candidate
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.release import Release
from hpcgen.planning.resolver.order import build_order
from hpcgen.planning.resolver.question import ALWAYS, Question
from hpcgen.planning.resolver.reasons import reasons
from hpcgen.planning.resolver.search import search


class NoPlanError(ConflictError):
    """No plan exists. What clashes takes longer to say, so ``conflicts`` does where somebody wants to know."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(
            "no choice of versions fits everything that was asked",
            remedy="`hpcgen plan` says which requirements clash, and what would help",
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
            options=question.here(candidate).choice.as_data(),
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
