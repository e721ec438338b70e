"""Blocks and tables on one partition of a site, independent of the request; computed once for all plans.

A plan asks for few blocks and leaves the rest as the site and the tables have it, and what a remedy changes is less
still. So all that rests on the site, and on a block's own options, is kept here from one question to the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec

from hpcgen.blocks.base import Facts, Need, Situation
from hpcgen.blocks.options import BlockChoice, block_options
from hpcgen.blocks.requirements import (
    Candidate,
    Form,
    Origin,
    Refusal,
    Requirement,
    host_refusals,
    option_refusals,
    version,
)
from hpcgen.blocks.ways import for_gpu, in_use, way_refusals
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Position
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.release import Beside, Release
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import OptionValue

# A block with its options on one node: its rows as they are there, what rules them out, and what they need.


class BlockHere:
    """Computed on first use; later calls return the same objects."""

    def __init__(self, node: ResolverNode, name: str, choose: Callable[[], BlockChoice]) -> None:
        self.node = node
        self.name = name
        self._choose = choose
        self.block = node.catalog.block(name)
        self.rows = node.catalog.releases(name)
        self._choices: dict[str, BlockChoice] = {}
        self._as_data: dict[int, Mapping[str, OptionValue]] = {}
        self._releases: dict[tuple[str, int], Release] = {}
        self._candidates: dict[str, list[Candidate]] = {}
        self._refusals: dict[Candidate, list[Refusal]] = {}
        self._fits: dict[Candidate, bool] = {}
        self._needs: dict[Candidate, list[tuple[str, bool, Requirement]]] = {}
        self._active: dict[int, list[Need]] = {}

    @cached_property
    def choice(self) -> BlockChoice:
        """The options; computed late, because those of a block that nothing asks for may be incomplete."""
        return self._choose()

    def choice_for(self, number: str) -> BlockChoice:
        """The options of a release: an alternative where it can be had with that alone."""
        if number not in self._choices:
            self._choices[number] = self._choice_for(number)
        return self._choices[number]

    def _choice_for(self, number: str) -> BlockChoice:
        if not self.choice.alternatives:
            return self.choice
        tried = Candidate(self.name, self.name, number)
        every = [self.choice, *(other for _, other in self.choice.alternatives)]
        return next((each for each in every if not list(self._refused(tried, each))), self.choice)

    def gives_way(self, number: str) -> str:
        """The option whose default this release cannot be had with; empty for most."""
        chosen = self.choice_for(number)
        return next((option for option, other in self.choice.alternatives if other is chosen), "")

    def release(self, number: str) -> Release:
        """A row as it is for its options and the node's architecture."""
        return self._release(number, self.choice_for(number))

    def _release(self, number: str, choice: BlockChoice) -> Release:
        if not self.rows[number].ways:
            return self.rows[number]
        key = (number, id(choice))
        if key not in self._releases:
            self._releases[key] = in_use(self.rows[number], self._data(choice), self.node.facts.architecture)
        return self._releases[key]

    def _data(self, choice: BlockChoice) -> Mapping[str, OptionValue]:
        return self._as_data.setdefault(id(choice), choice.as_data())

    @cached_property
    def bound_to_base(self) -> bool:
        """Whether only some distributions have one of the releases."""
        return any(self.release(number).on for number in self.rows)

    def candidates(self, identifier: str) -> list[Candidate]:
        """Every version, best first."""
        if identifier not in self._candidates:
            numbers = sorted(self.rows, key=version, reverse=True)
            # What only another distribution has comes after what the preferred one has, then what needs another option
            # than the default; last what is no default.
            numbers.sort(key=self._place_of)
            self._candidates[identifier] = [Candidate(identifier, self.name, each) for each in numbers]
        return self._candidates[identifier]

    def _place_of(self, number: str) -> tuple[bool, bool, int]:
        release = self.release(number)
        return bool(release.not_default), bool(self.gives_way(number)), self._distance(release)

    def _distance(self, release: Release) -> int:
        """How far down the order of distributions the first one is that has a release."""
        bases = self.node.providers("base") if release.on else []
        return min((bases.index(name) for name in release.on if name in bases), default=0)

    def refusals(self, candidate: Candidate) -> Sequence[Refusal]:
        """Which facts of the node and options of the block rule a candidate out."""
        if candidate not in self._refusals:
            self._refusals[candidate] = list(self._refused(candidate, self.choice_for(candidate.version)))
        return self._refusals[candidate]

    def default_refusals(self, candidate: Candidate) -> Sequence[Refusal]:
        """The same as if no default gave way."""
        if not self.gives_way(candidate.version):
            return self.refusals(candidate)
        return list(self._refused(candidate, self.choice))

    def _refused(self, candidate: Candidate, choice: BlockChoice) -> Iterator[Refusal]:
        row = self.rows[candidate.version]
        yield from self._vendor_refusal(candidate)
        yield from host_refusals(candidate, self._release(candidate.version, choice), self.node.known)
        if row.only or row.ways:
            data = self._data(choice)
            yield from option_refusals(candidate, row, data)
            yield from way_refusals(candidate, row, data, self.node.facts.architecture, self.node.gpu)

    def _vendor_refusal(self, candidate: Candidate) -> Iterator[Refusal]:
        """Whether the block is for GPUs of another make than the node's."""
        gpu, wanted = self.node.facts.partition.gpu, self.block.gpu_vendor
        if gpu is not None and wanted and gpu.vendor != wanted:
            place = f"partitions.{self.node.partition}.gpu.vendor"
            requires, newer = {"vendor": wanted}, candidate.version
            yield Refusal(
                candidate, Reason(rule="vendor", requires=requires, found=gpu.vendor, newer=newer, place=place)
            )

    def fits_site(self, candidate: Candidate) -> bool:
        """Whether the site and the block's own options leave a candidate: the search need not look at the others."""
        if candidate not in self._fits:
            ranges = self.node.site_ranges(candidate.identifier)
            self._fits[candidate] = all(r.accepts(candidate) for r in ranges) and not self.refusals(candidate)
        return self._fits[candidate]

    def for_gpu(self, number: str) -> bool:
        """Whether a release can be had for the node's GPU in some way, be it with other options."""
        ways = self.release(number).ways
        return not ways or any(for_gpu(way, self.node.gpu[0]) for way in ways)

    def needs(self, candidate: Candidate) -> list[tuple[str, bool, Requirement]]:
        """The active needs of a candidate: name, whether only for the build, the requirement.

        Among them what it asks of others that it does not need, should they be there: not ``demanded``.
        """
        if candidate not in self._needs:
            return self._needs.setdefault(candidate, list(self._find_needs(candidate)))
        return self._needs[candidate]

    def _active_needs(self, choice: BlockChoice) -> list[Need]:
        """The needs of the block that hold with its options on this node."""
        if id(choice) not in self._active:
            situation = Situation(self.node.facts, choice.options)
            self._active[id(choice)] = [n for n in self.block.needs if n.when is None or n.when(situation)]
        return self._active[id(choice)]

    def _find_needs(self, candidate: Candidate) -> Iterator[tuple[str, bool, Requirement]]:
        release = self.release(candidate.version)
        for need in self._active_needs(self.choice_for(candidate.version)):
            narrowed = list(self._accepted(need.name, release))
            if need.providers:
                allowed: Mapping[str, str] = dict.fromkeys(need.providers, need.versions)
                origin = self._origin(candidate, None)
                yield need.name, need.build_only, Requirement(need.name, allowed, origin, need.enough)
            elif need.versions or not narrowed:
                asked = self._requirement(need.name, need.versions, self._origin(candidate, None), need.enough)
                yield need.name, need.build_only, asked
            for accepted in narrowed:
                versions = release.accepts[accepted]
                if accepted != need.name:
                    others = {p: "" for p in self.node.catalog.virtuals[need.name] if p != accepted}
                    allowed = {accepted: versions, **others}
                    asked = Requirement(need.name, allowed, self._origin(candidate, ("accepts", accepted)), need.enough)
                else:
                    origin = self._origin(candidate, ("accepts", accepted))
                    asked = self._requirement(need.name, versions, origin, need.enough)
                yield need.name, need.build_only, asked
        for said in release.beside:
            for name, versions in said.accepts.items():
                virtuals = [each for each, names in self.node.catalog.virtuals.items() if name in names]
                for identifier in virtuals or [name]:
                    yield name, False, self._beside(candidate, identifier, {name: versions}, said)
        if release.on:
            # In the order of the distributions, whichever the table has them in.
            known = self.node.catalog.virtuals.get("base", [])
            on = {name: release.on[name] for name in (*known, *release.on) if name in release.on}
            yield "base", True, Requirement("base", on, self._origin(candidate, ("on",)))

    def _beside(self, candidate: Candidate, identifier: str, range_: Mapping[str, str], said: Beside) -> Requirement:
        allowed = {**dict.fromkeys(self.node.catalog.virtuals.get(identifier, ()), ""), **range_}
        why = f"{said.message}; {said.remedy}" if said.remedy else said.message

        def place() -> Any:
            ways = (["releases", candidate.version, "beside"], ["beside"])
            documents = self.node.catalog.release_documents(candidate.block)
            return next((d.position(way) for d in documents for way in ways if _has(d.data, way)), None)

        origin = Origin(candidate.block, place, version=candidate.version, why=why)
        return Requirement(identifier, allowed, origin, demanded=False)

    def _accepted(self, name: str, release: Release) -> Iterator[str]:
        for accepted in release.accepts:
            if accepted == name or accepted in self.node.catalog.virtuals.get(name, ()):
                yield accepted

    def _origin(self, candidate: Candidate, below: tuple[str, ...] | None) -> Origin:
        def place() -> Any:
            if below is None:
                return self.node.catalog.block_origin(candidate.block)
            for document in self.node.catalog.release_documents(candidate.block):
                if candidate.version in document.data.get("releases", {}):
                    return document.position(["releases", candidate.version, *below])
            return None

        return Origin(candidate.block, place, version=candidate.version)

    def _requirement(self, name: str, versions: str, origin: Origin, enough: Mapping[str, str]) -> Requirement:
        """A requirement on a block or on a virtual as a whole."""
        if name in self.node.catalog.virtuals:
            allowed = dict.fromkeys(self.node.catalog.virtuals[name], versions) if versions else None
            return Requirement(name, allowed, origin, enough)
        return Requirement(self.node.catalog.identifier(name), {name: versions}, origin, enough)


def _has(data: Any, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(data, Mapping) or step not in data:
            return False
        data = data[step]
    return True


KEPT = 64
"""Of so many nodes that were asked for last a catalog keeps what was worked out."""
SETTINGS = 512
"""So many blocks with options of their own are kept of a node, and so many lists of what is ruled out."""
_LOCK = threading.Lock()


def node_of(catalog: Catalog, site: Site, partition: str, document: Document | None = None) -> ResolverNode:
    """One partition of a site with what is known of blocks there, from earlier questions too.

    ``document``: where the positions of facts come from.
    """
    key = (id(site), partition, id(document))
    with _LOCK:
        # Out and in again: those that nobody has asked for longest are the first.
        node = catalog.nodes.pop(key, None) or ResolverNode(catalog, site, partition, document)
        catalog.nodes[key] = node
        if len(catalog.nodes) > KEPT:
            del catalog.nodes[next(iter(catalog.nodes))]
    return node


class ResolverNode:
    """One partition of a site, and what blocks and their tables are there."""

    def __init__(self, catalog: Catalog, site: Site, partition: str, document: Document | None = None) -> None:
        self.catalog = catalog
        self.site = site
        self.partition = partition
        self.document = document
        self.facts = Facts.of(site, partition)
        self._providers: dict[str, list[str]] = {}
        self._may_need: dict[str, set[str]] = {}
        self._ranges: dict[str, list[Requirement]] = {}
        self._usual: dict[tuple[str, Form], BlockHere] = {}
        self._said: dict[tuple[str, bytes], BlockHere] = {}
        self._ruled_out: dict[object, list[tuple[Requirement, list[Candidate]]]] = {}

    def place(self, path: str) -> Position | None:
        """The position of a path of words with dots between them in the profile."""
        return self.document.position(path.split(".")) if self.document is not None else None

    @cached_property
    def gpu(self) -> tuple[str, str]:
        """Whose GPU the node has, if it has one, and the path of that in the profile."""
        gpu, path = self.facts.partition.gpu, f"partitions.{self.partition}"
        return ("", path) if gpu is None else (gpu.vendor, f"{path}.gpu.vendor")

    @cached_property
    def known(self) -> Mapping[str, tuple[str, str]]:
        """Facts of the node that release rows have ranges of, each with its path in the profile; no path if assumed."""
        gpu = self.facts.partition.gpu
        values = {} if gpu is None else {"driver": gpu.driver, "capability": gpu.capability, "target": gpu.target}
        at = {name: f"partitions.{self.partition}.gpu.{name}" for name in values}
        at |= {"driver": ""} if gpu is not None and gpu.driver_assumed else {}
        return {name: (value, at[name]) for name, value in values.items() if value is not None}

    def usual(self, block: str, form: Form) -> BlockHere:
        """A block without options in the request, in a form."""
        if (block, form) not in self._usual:
            here = BlockHere(self, block, partial(self._usual_options, block, form))
            # Another thread may be as far: the requirements of a block must be the same ones for all.
            return self._usual.setdefault((block, form), here)
        return self._usual[block, form]

    def _usual_options(self, block: str, form: Form) -> BlockChoice:
        return block_options(self.catalog.block(block), self.facts, {}, {}, lambda option: None, dict(form))

    def with_options(self, block: str, choice: BlockChoice) -> BlockHere:
        """A block with options in the request."""
        key = (block, msgspec.json.encode(choice))
        if len(self._said) > SETTINGS:
            self._said.clear()
        return self._said.setdefault(key, BlockHere(self, block, lambda: choice))

    def providers(self, identifier: str) -> list[str]:
        """Blocks that can stand for an identifier here, the best suited first."""
        if identifier not in self._providers:
            ranked = []
            for position, name in enumerate(self.catalog.virtuals.get(identifier, [identifier])):
                rank = self.catalog.block(name).preference(self.facts)
                if rank is not None:
                    ranked.append((rank, name != self.site.image.distribution, position, name))
            self._providers[identifier] = [name for *_, name in sorted(ranked)]
        return self._providers[identifier]

    def may_need(self, identifier: str) -> set[str]:
        """Identifiers on which some block may have requirements, but for the base."""
        if identifier not in self._may_need:
            needs = (need.name for block in self.providers(identifier) for need in self.catalog.block(block).needs)
            self._may_need[identifier] = set(map(self.catalog.identifier, needs))
        return self._may_need[identifier]

    def site_ranges(self, identifier: str) -> list[Requirement]:
        """Ranges of versions that blocks derive from the site's facts."""
        if identifier not in self._ranges:
            return self._ranges.setdefault(identifier, list(self._find_site_ranges(identifier)))
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

    def ruled_out(
        self,
        identifier: str,
        candidates: Sequence[Candidate],
        blocks: Mapping[tuple[str, Form], BlockHere],
        order: object,
        by_default: bool,
    ) -> list[tuple[Requirement, list[Candidate]]]:
        """For each fact and option that rules some candidates out: the requirement that says so, and these.

        blocks: what the candidates are of, by name and form.
        order: what the order of the candidates rests on.
        by_default: as if no default gave way.
        """
        key = (identifier, tuple(blocks.items()), order, by_default)
        found = self._ruled_out.get(key)
        if found is None:
            if len(self._ruled_out) > SETTINGS:
                self._ruled_out.clear()
            refusing = BlockHere.default_refusals if by_default else BlockHere.refusals
            refusals = [each for c in candidates for each in refusing(blocks[c.block, c.form], c)]
            found = self._ruled_out.setdefault(key, list(self._bounds(identifier, refusals)))
        return found

    def _bounds(self, identifier: str, every: Sequence[Refusal]) -> Iterator[tuple[Requirement, list[Candidate]]]:
        by_bound: dict[str, list[Refusal]] = {}
        for refusal in every:
            by_bound.setdefault(refusal.bound.bound, []).append(refusal)
        for _, refusals in sorted(by_bound.items()):
            allowed: dict[str, str] = dict.fromkeys(self.providers(identifier), "")
            for c in dict.fromkeys((each.candidate.block, each.candidate.version) for each in refusals):
                allowed[c[0]] = ",".join(part for part in (allowed[c[0]], f"!={c[1]}") if part)
            bound, path = refusals[0].bound, refusals[0].reason.place
            place = partial(self.place, path) if path else lambda: None
            origin = Origin(bound.bound, place, "site", path=path, bounds=(bound,))
            yield Requirement(identifier, allowed, origin), [each.candidate for each in refusals]
