"""What is to be resolved: candidates, what they need, and what the site leaves of them.

Candidates are ordered by how well the provider suits the site and then newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from hpcgen.blocks.base import Facts, Situation
from hpcgen.blocks.requirements import (
    Candidate,
    Origin,
    Refusal,
    Requirement,
    host_refusals,
    option_refusals,
    version,
)
from hpcgen.blocks.ways import for_gpu, in_use, way_refusals
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.reasons import Reason
from hpcgen.model.release import Beside, Release
from hpcgen.resolver.choices import Choices

ALWAYS = ("base", "site_trust")
"""What every image has, whatever the stack says."""


class Question(msgspec.Struct):
    """What is to be resolved: the stack's choices, the site's facts, and where each was said.

    ``choices`` maps block names to options; ``roots`` are the requirements of the stack and the command
    line, in order of importance; ``place`` tells the position of a fact in the site profile; ``kept`` are versions
    of blocks that are tried first (those of a lock of which one thing is to move); ``stated``: the same as
    clauses, once somebody needs them.
    """

    catalog: Catalog
    facts: Facts
    choices: Choices
    roots: Sequence[Requirement]
    place: Any
    partition: str = ""
    preferred_base: str | None = None
    kept: Mapping[str, str] = {}
    stated: Any = None
    _roots: list[Requirement] = []
    _providers: dict[str, list[str]] = {}
    _candidates: dict[str, list[Candidate]] = {}
    _needs: dict[Candidate, list[tuple[str, bool, Requirement]]] = {}
    _ranges: dict[str, list[Requirement]] = {}
    _refusals: dict[Candidate, Sequence[Refusal]] = {}
    _releases: dict[Candidate, Release] = {}
    _rank: dict[str, tuple[Any, ...]] = {}
    _named: dict[str, int] = {}

    def all_roots(self) -> list[Requirement]:
        """The requirements of stack and command line, and what every image has."""
        if not self._roots:
            every = (Requirement(name, None, Origin("every image", kind="always")) for name in ALWAYS)
            self._roots = [*self.roots, *every]
        return self._roots

    def rank(self, identifier: str) -> tuple[Any, ...]:
        """What is chosen first: what the stack names, in its order, so that its first is the newest.

        Then the base, because it decides at once which compilers and Pythons there are, and these; then the rest.
        """
        if identifier not in self._rank:
            if not self._named:
                named = dict.fromkeys(root.identifier for root in self.roots if root.demanded)
                self._named = {name: place for place, name in enumerate(named) if name not in ALWAYS}
            place = self._named.get(identifier, len(self.roots))
            bound = any(self.release(c).on for c in self.candidates(identifier))
            self._rank[identifier] = (place, identifier not in ALWAYS, not bound, identifier)
        return self._rank[identifier]

    def may_need(self, identifier: str) -> set[str]:
        """Identifiers on which some candidate may have requirements, whatever its version and options."""
        needs = (need.name for block in self.providers(identifier) for need in self.catalog.block(block).needs)
        return {*map(self.catalog.identifier, needs), *([] if self.rank(identifier)[2] else ["base"])}

    def requirement(self, name: str, versions: str, origin: Origin, enough: Mapping[str, str]) -> Requirement:
        """A requirement on a block or on a virtual as a whole."""
        if name in self.catalog.virtuals:
            allowed = dict.fromkeys(self.catalog.virtuals[name], versions) if versions else None
            return Requirement(name, allowed, origin, enough)
        return Requirement(self.catalog.identifier(name), {name: versions}, origin, enough)

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
        return known

    def providers(self, identifier: str) -> list[str]:
        """Blocks that can stand for an identifier here, the best suited first."""
        if identifier not in self._providers:
            ranked = []
            for position, name in enumerate(self.catalog.virtuals.get(identifier, [identifier])):
                rank = self.catalog.block(name).preference(self.facts)
                if rank is not None:
                    ranked.append((rank, name != self.preferred_base, position, name))
            self._providers[identifier] = [name for *_, name in sorted(ranked)]
        return self._providers[identifier]

    def candidates(self, identifier: str) -> list[Candidate]:
        """Every version of every provider that suits the site, best first."""
        if identifier not in self._candidates:
            found: list[Candidate] = []
            for block in self.providers(identifier):
                newest_first = sorted(self.catalog.releases(block), key=version, reverse=True)
                rows = [(self.release(Candidate(identifier, block, text)), text) for text in newest_first]
                # What only another distribution has comes after what the preferred one has; last what is no default.
                rows.sort(key=lambda row: (bool(row[0].not_default), self._distance(row[0])))
                found.extend(Candidate(identifier, block, text) for _, text in rows)
            found.sort(key=lambda candidate: self.kept.get(candidate.block) != candidate.version)
            self._candidates[identifier] = found
        return self._candidates[identifier]

    def _distance(self, release: Release) -> int:
        """How far down the order of distributions the first one is that has a release."""
        bases = self.providers("base") if release.on else []
        return min((bases.index(name) for name in release.on if name in bases), default=0)

    def release(self, candidate: Candidate) -> Release:
        """The row of a candidate, as it is for the options of its block and the node's architecture."""
        row = self.catalog.releases(candidate.block)[candidate.version]
        if not row.ways:
            return row
        if candidate not in self._releases:
            options = self.choices.of(candidate.block, candidate.form).as_data()
            self._releases[candidate] = in_use(row, options, self.facts.architecture)
        return self._releases[candidate]

    def refusals(self, candidate: Candidate) -> Sequence[Refusal]:
        """Which facts of the node and options of the block rule a candidate out."""
        if candidate not in self._refusals:
            release = self.release(candidate)
            found = [*self._vendor_refusal(candidate), *host_refusals(candidate, release, self.node_facts())]
            row = self.catalog.releases(candidate.block)[candidate.version]
            if row.only or row.ways:
                options = self.choices.of(candidate.block, candidate.form).as_data()
                found += option_refusals(candidate, row, options)
                found += way_refusals(candidate, row, options, self.facts.architecture, self._gpu())
            self._refusals[candidate] = found
        return self._refusals[candidate]

    def _gpu(self) -> tuple[str, str]:
        """Whose GPU the node has, if it has one, and the path of that in the profile."""
        gpu, path = self.facts.partition.gpu, f"partitions.{self.partition}"
        return ("", path) if gpu is None else (gpu.vendor, f"{path}.gpu.vendor")

    def for_gpu(self, candidate: Candidate) -> bool:
        """Whether a release can be had for the node's GPU in some way, be it with other options."""
        ways = self.release(candidate).ways
        return not ways or any(for_gpu(way, self._gpu()[0]) for way in ways)

    def fits_site(self, candidate: Candidate) -> bool:
        """Whether the site and the block's own options leave a candidate: the search need not look at the others."""
        return all(r.accepts(candidate) for r in self.site_ranges(candidate.identifier)) and not self.refusals(
            candidate
        )

    def _vendor_refusal(self, candidate: Candidate) -> Iterator[Refusal]:
        """Whether the block is for GPUs of another make than the node's."""
        gpu, wanted = self.facts.partition.gpu, self.catalog.block(candidate.block).gpu_vendor
        if gpu is not None and wanted and gpu.vendor != wanted:
            place = f"partitions.{self.partition}.gpu.vendor"
            requires, newer = {"vendor": wanted}, candidate.version
            yield Refusal(
                candidate, Reason(rule="vendor", requires=requires, found=gpu.vendor, newer=newer, place=place)
            )

    def site_ranges(self, identifier: str) -> list[Requirement]:
        """Ranges of versions that blocks derive from the site's facts."""
        if identifier not in self._ranges:
            self._ranges[identifier] = list(self._find_site_ranges(identifier))
        return self._ranges[identifier]

    def _find_site_ranges(self, identifier: str) -> Iterator[Requirement]:
        for block in self.providers(identifier):
            for said in self.catalog.block(block).site_ranges(self.facts):
                others = {p: "" for p in self.providers(identifier) if p != block}
                own = said.path.startswith("fabric.") and self.facts.partition.fabric is not None
                path = f"partitions.{self.partition}.{said.path}" if own else said.path
                bound = Reason(rule="site", by=said.reason, requires={block: said.versions}, place=path)
                origin = Origin(said.reason, partial(self.place, path), "site", path=path, bounds=(bound,))
                yield Requirement(identifier, {block: said.versions, **others}, origin)

    def site_requirements(self, identifier: str, like: Candidate | None = None) -> list[Requirement]:
        """What the site asks of an identifier, for people: its ranges, and what its facts and the options rule out.

        ``like``: a candidate in whose form its block is looked at.
        """
        block, form = (like.block, like.form) if like is not None else ("", ())
        candidates = [
            msgspec.structs.replace(c, form=form) if c.block == block else c for c in self.candidates(identifier)
        ]
        return [*self.site_ranges(identifier), *(each for each, _ in self.ruled_out(identifier, candidates))]

    def ruled_out(
        self, identifier: str, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Requirement, list[Candidate]]]:
        """For each fact and option that rules some candidates out: the requirement that says so, and these."""
        by_bound: dict[str, list[Refusal]] = {}
        for refusal in (each for candidate in candidates for each in self.refusals(candidate)):
            by_bound.setdefault(str(refusal.bound), []).append(refusal)
        for _, refusals in sorted(by_bound.items()):
            allowed: dict[str, str] = dict.fromkeys(self.providers(identifier), "")
            for c in dict.fromkeys((each.candidate.block, each.candidate.version) for each in refusals):
                allowed[c[0]] = ",".join(part for part in (allowed[c[0]], f"!={c[1]}") if part)
            bound, path = refusals[0].bound, refusals[0].reason.place
            place = partial(self.place, path) if path else lambda: None
            origin = Origin(bound.bound, place, "site", path=path, bounds=(bound,))
            yield Requirement(identifier, allowed, origin), [each.candidate for each in refusals]

    def needs(self, candidate: Candidate) -> list[tuple[str, bool, Requirement]]:
        """The active needs of a candidate: name, whether only for the build, the requirement.

        Among them what it asks of others that it does not need, should they be there: not ``demanded``.
        """
        if candidate not in self._needs:
            self._needs[candidate] = list(self._find_needs(candidate))
        return self._needs[candidate]

    def _find_needs(self, candidate: Candidate) -> Iterator[tuple[str, bool, Requirement]]:
        release = self.release(candidate)
        situation = Situation(self.facts, self.choices.of(candidate.block, candidate.form).options)
        for need in self.catalog.block(candidate.block).needs:
            if need.when is not None and not need.when(situation):
                continue
            narrowed = list(self._accepted(need.name, release))
            if need.versions or not narrowed:
                asked = self.requirement(need.name, need.versions, self._origin(candidate, None), need.enough)
                yield need.name, need.build_only, asked
            for accepted in narrowed:
                versions = release.accepts[accepted]
                if accepted != need.name:
                    others = {p: "" for p in self.catalog.virtuals[need.name] if p != accepted}
                    allowed: Mapping[str, str] = {accepted: versions, **others}
                    asked = Requirement(need.name, allowed, self._origin(candidate, ("accepts", accepted)), need.enough)
                else:
                    origin = self._origin(candidate, ("accepts", accepted))
                    asked = self.requirement(need.name, versions, origin, need.enough)
                yield need.name, need.build_only, asked
        for said in release.beside:
            for name, versions in said.accepts.items():
                virtuals = [each for each, names in self.catalog.virtuals.items() if name in names]
                for identifier in virtuals or [name]:
                    yield name, False, self._beside(candidate, identifier, {name: versions}, said)
        if release.on:
            # In the order of the distributions, whichever the table has them in.
            known = self.catalog.virtuals.get("base", [])
            on = {name: release.on[name] for name in (*known, *release.on) if name in release.on}
            yield "base", True, Requirement("base", on, self._origin(candidate, ("on",)))

    def _beside(self, candidate: Candidate, identifier: str, range_: Mapping[str, str], said: Beside) -> Requirement:
        allowed = {**dict.fromkeys(self.catalog.virtuals.get(identifier, ()), ""), **range_}
        why = f"{said.message}; {said.remedy}" if said.remedy else said.message

        def place() -> Any:
            ways = (["releases", candidate.version, "beside"], ["beside"])
            documents = self.catalog.release_documents(candidate.block)
            return next((d.position(way) for d in documents for way in ways if _has(d.data, way)), None)

        origin = Origin(candidate.block, place, version=candidate.version, why=why)
        return Requirement(identifier, allowed, origin, demanded=False)

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


def _has(data: Any, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(data, Mapping) or step not in data:
            return False
        data = data[step]
    return True
