"""Blocks and tables on one partition of a site, independent of the request; computed once for all plans.

A plan asks for few blocks and leaves the rest as the site and the tables have it, and what a remedy changes is less
still. So all that rests on the site, and on a block's own options, is kept here from one question to the next.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import msgspec

from hpcgen.blocks.base import Facts
from hpcgen.blocks.options import BlockChoice, block_options
from hpcgen.blocks.requirements import Candidate, Form, Origin, Refusal, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Position
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.site import Site
from hpcgen.planning.resolver.block_here import BlockHere

KEPT = 64
"""Of so many nodes that were asked for last a catalog keeps what was worked out."""
SETTINGS = 512
"""So many blocks with options of their own are kept of a node, and so many lists of what is ruled out."""
_LOCK = threading.Lock()


def node_of(catalog: Catalog, site: Site, partition: str, document: Document | None = None) -> ResolverNode:
    """One partition of a site with what is known of blocks there, from earlier questions too.

    Parameters
    ----------
    document: where the positions of facts come from.
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
        """Facts of the node that release rows have ranges of, each with its path in the profile."""
        gpu = self.facts.partition.gpu
        values = {} if gpu is None else {"driver": gpu.driver, "capability": gpu.capability, "target": gpu.target}
        path = f"partitions.{self.partition}.gpu"
        return {name: (value, f"{path}.{name}") for name, value in values.items() if value is not None}

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
        key = (block, msgspec.json.encode(choice.options))
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
    ) -> list[tuple[Requirement, list[Candidate]]]:
        """For each fact and option that rules some candidates out: the requirement that says so, and these.

        Parameters
        ----------
        blocks: what the candidates are of, by name and form.
        order: what the order of the candidates rests on.
        """
        key = (identifier, tuple(blocks.items()), order)
        found = self._ruled_out.get(key)
        if found is None:
            if len(self._ruled_out) > SETTINGS:
                self._ruled_out.clear()
            refusals = [each for c in candidates for each in blocks[c.block, c.form].refusals(c)]
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
