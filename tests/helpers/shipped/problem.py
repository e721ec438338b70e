"""A question on the shipped tables, worked out: candidates in order, what each asks for, what the site refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

import hpcgen
from hpcgen.blocks.base import Facts, Situation
from hpcgen.core.model.reasons import Rule
from tests.helpers.shipped.tables import (
    BLOCKS,
    Node,
    Row,
    by_way,
    declared,
    identifier,
    node,
    profile,
    stack,
    table,
    virtuals,
    ways_for,
    within,
)

ALWAYS = ("base", "site_trust")
Form = tuple[tuple[str, str], ...]


@dataclass
class Question:
    """What somebody asks: a profile and a stack by name or as data, and what the command line says."""

    site: str | dict[str, Any]
    partition: str
    stack: str | dict[str, Any]
    settings: dict[str, str] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def stack_data(self) -> dict[str, Any]:
        return stack(self.stack) if isinstance(self.stack, str) else self.stack

    @property
    def node(self) -> Node:
        return node(profile(self.site) if isinstance(self.site, str) else self.site, self.partition)

    def __str__(self) -> str:
        shown = self.site if isinstance(self.site, str) else self.node
        blocks = self.stack if isinstance(self.stack, str) else self.stack["blocks"]
        words = [f"--set {key}={value}" for key, value in self.settings.items()]
        words += [f"--add {name}" for name in self.added]
        kept = f" kept {self.kept}" if self.kept else ""
        return f"{shown} {self.partition} × {blocks} {' '.join(words)}{kept}"


class Candidate(NamedTuple):
    identifier: str
    block: str
    version: str
    form: Form = ()


class Asked(NamedTuple):
    """A requirement. ``block``: empty for a root. ``enough``: the form that is enough, () the whole, None any."""

    by: str
    block: str
    version: str
    of: str
    requires: tuple[tuple[str, str], ...] | None
    enough: frozenset[tuple[str, str]] | None
    demanded: bool = True
    build_only: bool = False
    name: str = ""
    place: str = ""

    def takes(self, candidate: Candidate) -> bool:
        if self.enough is not None and not set(candidate.form) <= self.enough:
            return False
        said = {candidate.block: ""} if self.requires is None else dict(self.requires)
        return candidate.block in said and within(candidate.version, said[candidate.block])


class Refused(NamedTuple):
    """Why the node or an option refuses a release: in the words of a plan's reasons."""

    rule: Rule
    by: str
    requires: str
    found: str
    place: str


class Bound(NamedTuple):
    """A range that a block derives from the site."""

    block: str
    versions: str
    place: str
    reason: str


class Problem:
    """A question, worked out as it is needed."""

    def __init__(self, question: Question, site: hpcgen.Site) -> None:
        self.question, self.node = question, question.node
        self.facts = Facts.of(site, question.partition)
        self.settings: dict[str, dict[str, str]] = {}
        for key, value in question.settings.items():
            block, _, option = key.partition(".")
            self.settings.setdefault(block, {})[option] = value
        self.blocks: dict[str, Mapping[str, Any]] = {k: v or {} for k, v in question.stack_data["blocks"].items()}
        self.blocks |= {name: {} for name in question.added if name not in self.blocks}
        self._options: dict[tuple[str, Form], list[Any]] = {}
        self._chosen: dict[tuple[str, str, Form], Any] = {}
        self._candidates: dict[str, list[Candidate]] = {}
        self._needs: dict[Candidate, list[Asked]] = {}
        self._active: dict[tuple[str, Form, str], list[Any]] = {}
        self._refusals: dict[Candidate, list[Refused]] = {}
        self._masks: dict[Any, int] = {}
        self._providers: dict[str, list[str]] = {}
        self._ranks: dict[str, tuple[Any, ...]] = {}

    # options and forms

    def options(self, block: str, form: Form = ()) -> Any:
        """The options of a block: its class's, the site's, what is enough, the stack's, the command line's."""
        return self._choices(block, form)[0]

    def _choices(self, block: str, form: Form) -> list[Any]:
        """Its options, and those that take their place in releases that cannot be had with a default."""
        if (block, form) not in self._options:
            cls = declared(block)
            said = dict(form) | dict(self.blocks.get(block, {}).get("options") or {})
            said |= {k: v for k, v in self.settings.get(block, {}).items() if k != "version"}
            values: dict[str, Any] = {**cls.defaults(self.facts), **said}
            more = [
                {**values, option: value}
                for option, others in cls.alternatives(self.facts).items()
                for value in others
                if option not in said
            ]
            self._options[block, form] = [msgspec.convert(v, cls.Options, strict=False) for v in (values, *more)]
        return self._options[block, form]

    def options_of(self, block: str, version: str, form: Form = ()) -> Any:
        """The options of a release: the first with which nothing rules it out."""
        if (block, version, form) not in self._chosen:
            choices = self._choices(block, form)
            tried = Candidate(block, block, version, form)
            serving = (o for o in choices if len(choices) > 1 and not any(self._find_refusals(tried, o)))
            self._chosen[block, version, form] = next(serving, choices[0])
        return self._chosen[block, version, form]

    def gives_way(self, candidate: Candidate) -> bool:
        """Whether a release is had with another option than the default."""
        return bool(self.options_of(*candidate[1:]) != self.options(candidate.block, candidate.form))

    def forms(self, block: str) -> list[Form]:
        """The forms of a block that may be enough for somebody, the smallest first."""
        known = {f.encode_name for f in msgspec.structs.fields(declared(block).Options)}
        said = {
            frozenset((option, value) for option, value in need.enough.items() if option in known)
            for other in BLOCKS
            for need in declared(other).needs
            if need.name == block
        }
        said |= {one & other for one in said for other in said}
        whole = self.options(block)
        found = {tuple(sorted(form)) for form in said if form and self.options(block, tuple(sorted(form))) != whole}
        return sorted(found | {()}, key=lambda form: (-len(form), form))

    # candidates

    def providers(self, name: str) -> list[str]:
        """The blocks that can stand for an identifier here, the best suited first."""
        if name not in self._providers:
            ranked = [
                (rank, block != self.node.distribution, position, block)
                for position, block in enumerate(virtuals().get(name, [name]))
                if (rank := declared(block).preference(self.facts)) is not None
            ]
            self._providers[name] = [block for *_, block in sorted(ranked)]
        return self._providers[name]

    def row(self, block: str, version: str, form: Form = (), options: Any = None) -> Row:
        """A row as it is for the release's options, or for others, and the node's architecture."""
        row, architecture = table(block)[version], self.facts.architecture
        if row.ways and options is None:
            options = self.options_of(block, version, form)
        for way in ways_for(row, architecture):
            if all(str(getattr(options, name)) in values for name, values in way["only"].items()):
                return by_way(row, way, architecture)
        return row

    def distance(self, block: str, version: str, form: Form) -> int:
        """How far down the site's distributions the first one is that has a release."""
        bases = self.providers("base")
        return min((bases.index(base) for base in self.row(block, version, form).on if base in bases), default=0)

    def candidates(self, name: str) -> list[Candidate]:
        """All that can stand for an identifier, in the order in which it is tried."""
        if name not in self._candidates:
            found = []
            for position, block in enumerate(self.providers(name)):
                for size, form in enumerate(self.forms(block)):
                    for age, version in enumerate(table(block)):
                        late = self.question.kept.get(block) != version
                        held = bool(table(block)[version].not_default)
                        one = Candidate(name, block, version, form)
                        order = (
                            late,
                            position,
                            size,
                            held,
                            self.gives_way(one),
                            self.distance(block, version, form),
                            age,
                        )
                        found.append((order, one))
            self._candidates[name] = [candidate for _, candidate in sorted(found)]
        return self._candidates[name]

    # requirements

    @cached_property
    def roots(self) -> list[Asked]:
        """What stack and command line ask for, and what every image has."""
        data, found = self.question.stack_data, []
        for name, said in self.blocks.items():
            written = name in data["blocks"]
            by, place = (f"stack {data['name']}", f"blocks.{name}") if written else ("--add", "")
            found.append(self._root(by, name, said.get("version", ""), said.get("provider"), True, place))
        if str((data.get("run") or {}).get("mpi", "true")).lower() == "true" and "mpi" in self.blocks:
            found.append(self._root("the self-test of MPI", "rank_test", "", None, True, ""))
        for name, values in self.settings.items():
            versions, provider = values.get("version", ""), values.get("provider") if name in virtuals() else None
            if versions or provider:
                found.append(self._root(f"--set {name}", name, versions, provider, False, ""))
        return found + [Asked("every image", "", "", name, None, None) for name in ALWAYS]

    def _root(self, by: str, name: str, versions: str, provider: str | None, demanded: bool, place: str) -> Asked:
        versions = f"=={versions}" if versions[:1].isdigit() else versions
        requires: dict[str, str] | None = {name: versions}
        if name in virtuals():
            all_of_it = [provider] if provider else virtuals()[name]
            requires = dict.fromkeys(all_of_it, versions) if provider or versions else None
        enough: frozenset[tuple[str, str]] | None = frozenset() if demanded else None
        return Asked(by, "", "", identifier(name), _plain(requires), enough, demanded, place=place)

    def needs(self, candidate: Candidate) -> list[Asked]:
        """What a candidate asks for."""
        if candidate not in self._needs:
            self._needs[candidate] = list(self._find_needs(candidate))
        return self._needs[candidate]

    def _find_needs(self, candidate: Candidate) -> Iterator[Asked]:
        _, block, version, form = candidate
        row = self.row(block, version, form)
        key = (block, form, str(self.options_of(block, version, form)))
        if key not in self._active:
            here = Situation(self.facts, self.options_of(block, version, form))
            self._active[key] = [n for n in declared(block).needs if n.when is None or n.when(here)]
        for need in self._active[key]:
            providers = virtuals().get(need.name)
            ranges: list[dict[str, str] | None] = []
            for name, said in row.accepts.items():
                if name == need.name:
                    ranges.append(dict.fromkeys(providers or [name], said))
                elif name in (providers or ()):
                    ranges.append({name: said, **{other: "" for other in providers or () if other != name}})
            if need.versions or not ranges:
                every = dict.fromkeys(providers, need.versions) if providers else {need.name: need.versions}
                ranges.append(None if providers and not need.versions else every)
            for one in ranges:
                enough = frozenset(need.enough.items())
                yield Asked(
                    block, block, version, identifier(need.name), _plain(one), enough, True, need.build_only, need.name
                )
        if row.on:
            yield Asked(block, block, version, "base", _plain(row.on), None, True, True, "base")

    # the site

    def bounds(self, name: str) -> list[Bound]:
        """The ranges that the site imposes on an identifier."""
        said = [(block, each) for block in self.providers(name) for each in declared(block).site_ranges(self.facts)]
        return [Bound(block, each.versions, each.path, each.reason) for block, each in said]

    def refusals(self, candidate: Candidate) -> list[Refused]:
        """All that the node and the block's options have against a candidate."""
        if candidate not in self._refusals:
            self._refusals[candidate] = list(self._find_refusals(candidate, self.options_of(*candidate[1:])))
        return self._refusals[candidate]

    def default_refusals(self, candidate: Candidate) -> list[Refused]:
        """The same as if no default gave way."""
        return list(self._find_refusals(candidate, self.options(candidate.block, candidate.form)))

    def _find_refusals(self, candidate: Candidate, options: Any) -> Iterator[Refused]:
        block, row, gpu = candidate.block, self.row(*candidate[1:], options), self.node.gpu
        make = declared(block).gpu_vendor
        if gpu and make and gpu["vendor"] != make:
            yield Refused("vendor", "", make, gpu["vendor"], f"{self.node.path}.vendor")
        for name, said in row.host.items():
            if name in gpu and not within(gpu[name], said):
                yield Refused("fact", name, said, gpu[name], f"{self.node.path}.{name}")
        if row.targets and "target" in gpu and gpu["target"] not in row.targets:
            yield Refused("fact", "target", " or ".join(row.targets), gpu["target"], f"{self.node.path}.target")
        for name, values in row.only.items():
            value = str(getattr(options, name))
            if value not in values:
                yield Refused("option", f"{block}.{name}", " or ".join(values), value, "")
        yield from self._by_way(candidate, table(block)[candidate.version], options)

    def _by_way(self, candidate: Candidate, row: Row, options: Any) -> Iterator[Refused]:
        """What leaves none of the ways in which a release can be had, or whose GPU all of them need."""
        architecture = self.facts.architecture
        left = ways_for(row, architecture)
        if row.ways and not left:
            known = sorted(each for each in ("aarch64", "x86_64") if ways_for(row, each))
            yield Refused("fact", "architecture", " or ".join(known), architecture, "system.architecture")
        make, path = self.node.gpu.get("vendor", ""), f"partitions.{self.node.partition}"
        path = f"{path}.gpu.vendor" if self.node.gpu else path
        if left and all(way.get("gpu", make) != make for way in left):
            yield Refused("fact", "GPU", " or ".join(sorted({way["gpu"] for way in left})), make, path)
            return
        for name in sorted({name for way in left for name in way["only"]}):
            known = list(dict.fromkeys(value for way in left for value in way["only"].get(name, ())))
            value = str(getattr(options, name))
            left = [way for way in left if value in way["only"].get(name, [value])]
            if not left:
                yield Refused("option", f"{candidate.block}.{name}", " or ".join(known), value, "")
                return
        if left and left[0].get("gpu", make) != make:
            yield Refused("fact", "GPU", left[0]["gpu"], make, path)

    # the order of choice

    def rank(self, name: str) -> tuple[Any, ...]:
        """The blocks of the stack in its order, the base and what depends on it, the rest by name.

        Of the first is no compiler that is named in no version.
        """
        if name not in self._ranks:
            asked = [root for root in self.roots if root.demanded and root.by != "every image"]
            named = [root.of for root in asked if root.of != "gnu" or any(dict(root.requires or ()).values())]
            place = named.index(name) if name in named and name not in ALWAYS else len(named)
            bound = any(self.row(*c[1:]).on for c in self.candidates(name))
            self._ranks[name] = place, name not in ALWAYS, not bound, name
        return self._ranks[name]

    def mask(self, asked: Asked) -> int:
        """The candidates that a requirement takes, a bit for each."""
        key = (asked.of, asked.requires, asked.enough)
        if key not in self._masks:
            self._masks[key] = sum(1 << n for n, c in enumerate(self.candidates(asked.of)) if asked.takes(c))
        return self._masks[key]


def _plain(requires: dict[str, str] | None) -> tuple[tuple[str, str], ...] | None:
    return None if requires is None else tuple(requires.items())
