"""What is to be resolved: candidates, what they need, and what the site leaves of them.

Candidates are ordered by how well the provider suits the site and then newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from hpcgen.blocks.base import Facts, Situation
from hpcgen.blocks.options import BlockChoice
from hpcgen.blocks.requirements import Candidate, Origin, Refusal, Requirement, host_refusal, option_refusal, version
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.reasons import Reason
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
        requires, newer = {"vendor": wanted}, candidate.version
        return Refusal(candidate, Reason(rule="vendor", requires=requires, found=gpu.vendor, newer=newer, place=place))

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
                bound = Reason(rule="site", by=said.reason, requires={block: said.versions}, place=said.path)
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
