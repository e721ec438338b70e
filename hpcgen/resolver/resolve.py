"""site × stack → chosen blocks: resolvelib over block releases, needs, virtuals and the site's facts.

Pure: the catalog is asked for classes and tables, nothing is written. Deterministic: candidates are ordered by
how well the provider suits the site and then newest first; identifiers by their place in the stack, then the
base, then by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import resolvelib

from hpcgen.blocks.base import Facts, Situation
from hpcgen.blocks.options import BlockChoice
from hpcgen.blocks.requirements import Candidate, Origin, Refusal, Requirement, host_refusal, option_refusal, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.plan import PlannedBlock
from hpcgen.model.reasons import Reason, Rule
from hpcgen.model.release import Release

ALWAYS = ("base", "site_trust")
"""What every image has, whatever the stack says."""


class Question(msgspec.Struct):
    """What is to be resolved: the stack's choices, the site's facts, and where each was said.

    ``choices`` maps block names to options; ``roots`` are the requirements of the stack and the command
    line, in order of importance; ``place`` tells the position of a fact in the site profile; ``kept`` are versions
    of blocks that are tried first (those of a lock of which one thing is to move); ``ignored``: a fact of the node that
    is not asked, to see what would be without it.
    """

    catalog: Catalog
    facts: Facts
    choices: Mapping[str, BlockChoice]
    roots: Sequence[Requirement]
    place: Any
    partition: str = ""
    preferred_base: str | None = None
    kept: Mapping[str, str] = {}
    ignored: str = ""
    _candidates: dict[str, list[Candidate]] = {}
    _needs: dict[Candidate, list[tuple[str, bool, Requirement]]] = {}
    _site: dict[str, list[Requirement]] = {}
    _bound: dict[str, bool] = {}
    _fitting: dict[str, list[Candidate]] = {}

    def requirement(self, name: str, versions: str, origin: Origin) -> Requirement:
        """A requirement on a block or on a virtual as a whole."""
        if name in self.catalog.virtuals:
            allowed = dict.fromkeys(self.catalog.virtuals[name], versions) if versions else None
            return Requirement(name, allowed, origin)
        return Requirement(self.catalog.identifier(name), {name: versions}, origin)

    def node_facts(self) -> dict[str, tuple[str, str]]:
        """Facts of the node that release rows have ranges of, each with its path in the profile."""
        gpu = self.facts.partition.gpu
        known: dict[str, tuple[str, str]] = {}
        if gpu is not None and gpu.driver is not None:
            known["driver"] = (gpu.driver, f"partitions.{self.partition}.gpu.driver")
        if gpu is not None and gpu.capability is not None:
            known["capability"] = (gpu.capability, f"partitions.{self.partition}.gpu.capability")
        if gpu is not None and gpu.target is not None:
            known["target"] = (gpu.target, f"partitions.{self.partition}.gpu.target")
        known.pop(self.ignored, None)
        return known

    def providers(self, identifier: str) -> list[str]:
        """Blocks that can stand for an identifier here, the best suited first."""
        names = self.catalog.virtuals.get(identifier, [identifier])
        ranked = []
        for position, name in enumerate(names):
            rank = self.catalog.block(name).preference(self.facts)
            if rank is not None:
                ranked.append((rank, name != self.preferred_base, position, name))
        return [name for *_, name in sorted(ranked)]

    def candidates(self, identifier: str) -> list[Candidate]:
        """Every version of every provider that suits the site, best first."""
        if identifier not in self._candidates:
            found: list[Candidate] = []
            for block in self.providers(identifier):
                releases = self.catalog.releases(block)
                newest_first = sorted(releases, key=version, reverse=True)
                # What only another distribution has comes after what the preferred one has.
                newest_first.sort(key=lambda text: self._distance(releases[text]))
                found.extend(Candidate(identifier, block, text) for text in newest_first)
            found.sort(key=lambda candidate: self.kept.get(candidate.block) != candidate.version)
            self._candidates[identifier] = found
        return self._candidates[identifier]

    def bound_to_base(self, identifier: str) -> bool:
        """Whether releases of it belong to certain distributions."""
        if identifier not in self._bound:
            self._bound[identifier] = any(self.release(c).on for c in self.candidates(identifier))
        return self._bound[identifier]

    def _distance(self, release: Release) -> int:
        """How far down the order of distributions the first one is that has a release."""
        bases = self.providers("base") if release.on else []
        return min((bases.index(name) for name in release.on if name in bases), default=0)

    def release(self, candidate: Candidate) -> Release:
        """The row of a candidate."""
        return self.catalog.releases(candidate.block)[candidate.version]

    def refusals(self, identifier: str) -> list[Refusal]:
        """Candidates that the node's facts or the blocks' own options rule out."""
        facts = self.node_facts()
        found = []
        for candidate in self.candidates(identifier):
            release = self.release(candidate)
            refusal = self._vendor_refusal(candidate) or host_refusal(candidate, release, facts)
            if refusal is None and release.only:
                refusal = option_refusal(candidate, release, self.choices[candidate.block].as_data())
            if refusal is not None:
                found.append(refusal)
        return found

    def _vendor_refusal(self, candidate: Candidate) -> Refusal | None:
        """Whether the block is for GPUs of another make than the node's."""
        gpu, wanted = self.facts.partition.gpu, self.catalog.block(candidate.block).gpu_vendor
        if gpu is None or not wanted or gpu.vendor == wanted:
            return None
        place = f"partitions.{self.partition}.gpu.vendor"
        wants, newer = {"vendor": wanted}, candidate.version
        return Refusal(candidate, Reason(rule="vendor", wants=wants, found=gpu.vendor, newer=newer, place=place))

    def fitting(self, identifier: str) -> list[Candidate]:
        """Candidates that the site and the blocks' own options leave: the search need not look at the others."""
        if identifier not in self._fitting:
            asked = self.site_requirements(identifier)
            self._fitting[identifier] = [c for c in self.candidates(identifier) if all(r.accepts(c) for r in asked)]
        return self._fitting[identifier]

    def site_requirements(self, identifier: str) -> list[Requirement]:
        """What the site asks of an identifier: ranges that its blocks derive, and versions the node can run."""
        if identifier not in self._site:
            self._site[identifier] = list(self._find_site_requirements(identifier))
        return self._site[identifier]

    def _find_site_requirements(self, identifier: str) -> Iterator[Requirement]:
        for block in self.providers(identifier):
            for said in self.catalog.block(block).site_ranges(self.facts):
                others = {p: "" for p in self.providers(identifier) if p != block}
                bound = Reason(rule="site", by=said.reason, wants={block: said.versions}, place=said.path)
                origin = Origin(said.reason, partial(self.place, said.path), "site", path=said.path, bounds=(bound,))
                yield Requirement(identifier, {block: said.versions, **others}, origin)
        refused = self.refusals(identifier)
        if refused:
            allowed: dict[str, str] = dict.fromkeys(self.providers(identifier), "")
            for refusal in refused:
                c = refusal.candidate
                allowed[c.block] = ",".join(part for part in (allowed[c.block], f"!={c.version}") if part)
            bounds = tuple(sorted({str(refusal.bound): refusal.bound for refusal in refused}.values(), key=str))
            path = next((refusal.reason.place for refusal in refused if refusal.reason.place), "")
            because = " and ".join(each.bound for each in bounds)
            place = partial(self.place, path) if path else lambda: None
            origin = Origin(because, place, "site", path=path, bounds=bounds)
            yield Requirement(identifier, allowed, origin)

    def needs(self, candidate: Candidate) -> list[tuple[str, bool, Requirement]]:
        """The active needs of a candidate: name, whether only for the build, the requirement."""
        if candidate not in self._needs:
            self._needs[candidate] = list(self._find_needs(candidate))
        return self._needs[candidate]

    def _find_needs(self, candidate: Candidate) -> Iterator[tuple[str, bool, Requirement]]:
        release = self.release(candidate)
        situation = Situation(self.facts, self.choices[candidate.block].options)
        for need in self.catalog.block(candidate.block).needs:
            if need.when is not None and not need.when(situation):
                continue
            narrowed = list(self._accepted(need.name, release))
            if need.versions or not narrowed:
                asked = self.requirement(need.name, need.versions, self._origin(candidate, None))
                yield need.name, need.build_only, asked
            for accepted in narrowed:
                versions = release.accepts[accepted]
                if accepted != need.name:
                    others = {p: "" for p in self.catalog.virtuals[need.name] if p != accepted}
                    allowed: Mapping[str, str] = {accepted: versions, **others}
                    asked = Requirement(need.name, allowed, self._origin(candidate, ("accepts", accepted)))
                else:
                    asked = self.requirement(need.name, versions, self._origin(candidate, ("accepts", accepted)))
                yield need.name, need.build_only, asked
        if release.on:
            yield "base", True, Requirement("base", dict(release.on), self._origin(candidate, ("on",)))

    def _accepted(self, name: str, release: Release) -> Iterator[str]:
        for accepted in release.accepts:
            if accepted == name or accepted in self.catalog.virtuals.get(name, ()):
                yield accepted

    def _origin(self, candidate: Candidate, below: tuple[str, ...] | None) -> Origin:
        def place() -> Any:
            if below is None:
                return self.catalog.block_origin(candidate.block)
            for document in self.catalog.release_documents(candidate.block):
                if candidate.version in document.data.get("releases", {}):
                    return document.position(["releases", candidate.version, *below])
            return None

        return Origin(candidate.block, place, version=candidate.version)


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
            found.append(_told("asked", requirement))
    mine = version(candidate.version)
    known = [c for c in question.candidates(candidate.identifier) if c.block == candidate.block]
    newer = min((c for c in known if version(c.version) > mine), key=lambda c: version(c.version), default=None)
    last = Reason(rule="newest") if newer is None else _why_not(question, newer, asked, chosen)
    return [*(each for number, each in enumerate(found) if each not in found[:number]), last]


def _told(rule: Rule, requirement: Requirement, found: str = "", newer: str = "") -> Reason:
    """What a requirement says, for the plan."""
    origin = requirement.origin
    return Reason(
        rule=rule,
        by=origin.by,
        by_version=origin.version,
        of=requirement.identifier,
        wants=None if requirement.allowed is None else dict(requirement.allowed),
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
            return _told("refused", requirement, newer=number)
    for _, _, requirement in question.needs(newer):
        here = chosen.get(requirement.identifier)
        if here is not None and not requirement.accepts(here):
            return _told("needs", requirement, found=str(here), newer=number)
    if question.kept.get(newer.block) == chosen[newer.identifier].version:
        return Reason(rule="kept", newer=number)
    return Reason(rule="rest", newer=number)
