"""The question: the request for one node with its options, and the candidates that tables and site allow.

Candidates are ordered by how well the provider suits the site and then newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from hpcgen.blocks.base import Facts
from hpcgen.blocks.options import RESERVED, BlockChoice, block_options, option_fields
from hpcgen.blocks.requirements import Candidate, Form, Origin, Refusal, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problem, Problems, UnknownNameError, did_you_mean, nearest
from hpcgen.core.model.release import Release
from hpcgen.core.model.stack import OptionValue, Stack, StackBlock
from hpcgen.core.support.quoting import plain
from hpcgen.planning.resolver.node import BlockHere, ResolverNode

ALWAYS = ("base", "site_trust")
"""What every image has, whatever the stack says."""


class Apart(msgspec.Struct, frozen=True):
    """What a release leaves of another block, whose Python packages do not all go with its own.

    Without a block it is what the user's own packages leave.
    """

    block: str
    version: str
    requirement: Requirement


class Question(msgspec.Struct):
    """The stack's choices on a node, and the place of each.

    ``choices`` maps block names to options; ``roots`` are the requirements of the stack and the command
    line, in order of importance; ``kept`` are versions of blocks that are tried first (those of a lock of which one
    thing is to move); ``beside`` is what releases leave of others besides their needs; ``stated``: the same as clauses,
    once somebody needs them.
    """

    node: ResolverNode
    choices: Choices
    roots: Sequence[Requirement]
    kept: Mapping[str, str] = {}
    beside: Mapping[tuple[str, str], Sequence[tuple[str, bool, Requirement]]] = {}
    stated: Any = None
    _roots: list[Requirement] = []
    _candidates: dict[str, list[Candidate]] = {}
    _rank: dict[str, tuple[Any, ...]] = {}
    _named: dict[str, int] = {}

    @property
    def catalog(self) -> Catalog:
        """Where blocks and tables are looked up."""
        return self.node.catalog

    @property
    def facts(self) -> Facts:
        """The facts of the site that blocks may use."""
        return self.node.facts

    def here(self, candidate: Candidate) -> BlockHere:
        """The block of a candidate with its options."""
        return self.choices.here(candidate.block, candidate.form)

    def all_roots(self) -> list[Requirement]:
        """The requirements of stack and command line, and the blocks of every image."""
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
                named = dict.fromkeys(root.identifier for root in self.roots if root.demanded and self._decides(root))
                self._named = {name: place for place, name in enumerate(named) if name not in ALWAYS}
            place = self._named.get(identifier, len(self.roots))
            bound = any(self.choices.here(block, ()).bound_to_base for block in self.providers(identifier))
            self._rank[identifier] = (place, identifier not in ALWAYS, not bound, identifier)
        return self._rank[identifier]

    def _decides(self, root: Requirement) -> bool:
        """Not a compiler that is named for an option alone: any base has one."""
        blocks = self.providers(root.identifier)
        asked = any((root.allowed or {}).values())
        return asked or not all(self.catalog.block(block).of_base for block in blocks)

    def may_need(self, identifier: str) -> set[str]:
        """Identifiers on which some candidate may have requirements, whatever its version and options."""
        return self.node.may_need(identifier) | (set() if self.rank(identifier)[2] else {"base"})

    def providers(self, identifier: str) -> list[str]:
        """Blocks that can stand for an identifier here, the best suited first."""
        return self.node.providers(identifier)

    def candidates(self, identifier: str) -> list[Candidate]:
        """Every version of every provider that suits the site, best first."""
        if identifier not in self._candidates:
            blocks = [self.choices.here(block, ()) for block in self.providers(identifier)]
            found = [candidate for block in blocks for candidate in block.candidates(identifier)]
            found.sort(key=lambda candidate: self.kept.get(candidate.block) != candidate.version)
            self._candidates[identifier] = found
        return self._candidates[identifier]

    def release(self, candidate: Candidate) -> Release:
        """The row of a candidate, as it is for the options of its block and the node's architecture."""
        return self.here(candidate).release(candidate.version)

    def refusals(self, candidate: Candidate) -> Sequence[Refusal]:
        """Which facts of the node and options of the block rule a candidate out."""
        return self.here(candidate).refusals(candidate)

    def fits_site(self, candidate: Candidate) -> bool:
        """Whether the site and the block's own options leave a candidate: the search need not look at the others."""
        return self.here(candidate).fits_site(candidate)

    def needs(self, candidate: Candidate) -> list[tuple[str, bool, Requirement]]:
        """The active needs of a candidate; see :meth:`BlockHere.needs`."""
        needs = self.here(candidate).needs(candidate)
        more = self.beside.get((candidate.block, candidate.version)) if self.beside else None
        return [*needs, *more] if more else needs

    def site_requirements(self, identifier: str, like: Candidate | None = None) -> list[Requirement]:
        """The site's requirements on an identifier, for people: ranges, and releases that facts and options exclude.

        ``like``: a candidate in whose form its block is looked at.
        """
        block, form = (like.block, like.form) if like is not None else ("", ())
        candidates = self.candidates(identifier)
        if form:
            candidates = [msgspec.structs.replace(c, form=form) if c.block == block else c for c in candidates]
        # What is there with the defaults is bounded by these, although others could have given way.
        by_default = like is not None and not self.here(like).gives_way(like.version)
        bounds = self.ruled_out(identifier, candidates, by_default=by_default)
        return [*self.node.site_ranges(identifier), *(each for each, _ in bounds)]

    def ruled_out(
        self, identifier: str, candidates: Sequence[Candidate], *, by_default: bool = False
    ) -> list[tuple[Requirement, list[Candidate]]]:
        """For each fact and option that rules some candidates out: the requirement that says so, and these.

        ``by_default``: as if no default gave way.
        """
        blocks = {(c.block, c.form): self.here(c) for c in candidates}
        # In which order the candidates are.
        order = (*(self.choices.here(block, ()) for block, _ in blocks), *self.kept.items())
        return self.node.ruled_out(identifier, candidates, blocks, order, by_default)


def parse_settings(settings: Sequence[str], catalog: Catalog) -> dict[str, dict[str, str]]:
    """block → option → value, the last of a repeated option. Every mistake is told at once.

    InputError: not of the form BLOCK.OPTION=VALUE, or with control characters. UnknownNameError: no such block or
    virtual.
    """
    result: dict[str, dict[str, str]] = {}
    problems = Problems()
    unknown = Problems()
    for text in settings:
        path, equals, value = text.partition("=")
        block, dot, option = path.partition(".")
        if not (equals and dot and block and option):
            problems.add(
                f"{text!r} is not a setting",
                where="--set",
                expected="BLOCK.OPTION=VALUE, such as tensorflow.install=pip",
            )
            continue
        try:
            plain(value, f"the value of {path}")
        except InputError as error:
            problems += [problem.at("--set") for problem in error.problems]
            continue
        if wrong := unknown_block(block, catalog, "--set"):
            unknown += wrong
            continue
        result.setdefault(block, {})[option] = value
    if problems:
        raise InputError([*problems, *unknown])
    unknown.raise_as(UnknownNameError)
    return result


def unknown_block(name: str, catalog: Catalog, option: str) -> list[Problem]:
    """The mistake of an option that names neither a block nor a virtual; empty if it does."""
    if name in catalog.virtuals or catalog.has_block(name):
        return []
    from hpcgen.catalog.other_names import successor_of

    known = [*catalog.names("block"), *catalog.virtuals]
    packages = f"{option} pip:{name} is a Python package, {option} apt:{name} one of the distribution"
    other = (
        packages if option == "--add" and not nearest(name, known) else did_you_mean(name, known, "hpcgen list blocks")
    )
    remedy = successor_of(catalog, name) or other
    return [Problem(f"no block is called {name!r}", option, remedy=remedy)]


class Choices(Mapping[str, BlockChoice]):
    """Options of every block that may come up, computed on first use."""

    def __init__(
        self,
        node: ResolverNode,
        stack: Stack,
        document: Document | None,
        settings: Mapping[str, Mapping[str, str]],
    ) -> None:
        catalog = node.catalog
        self._node = node
        self._catalog = catalog
        self._stack = stack
        self._document = document
        self._settings = settings
        self._here: dict[tuple[str, Form], BlockHere] = {}
        # Mistakes in what was said outright are told before anything is resolved, all at once.
        problems = Problems()
        for name in dict.fromkeys([*stack.blocks, *settings]):
            if name not in catalog.virtuals:
                try:
                    self[name]
                except UnknownNameError as error:
                    problems.extend(error.problems)
            else:
                problems.extend(_wrong_virtual_settings(catalog, name, settings.get(name, {})))
        problems.raise_as(UnknownNameError)

    def __getitem__(self, name: str) -> BlockChoice:
        return self.of(name, ())

    def form(self, name: str, enough: Mapping[str, str]) -> Form:
        """The form of a block that ``enough`` makes of it; () where what was said outright leaves nothing of that."""
        known = {field.encode_name for field in option_fields(self._catalog.block(name).Options)}
        form = tuple(sorted((option, value) for option, value in enough.items() if option in known))
        return form if form and self.of(name, form).options != self[name].options else ()

    def of(self, name: str, form: Form) -> BlockChoice:
        """The options of a block in a form."""
        return self.here(name, form).choice

    def here(self, name: str, form: Form) -> BlockHere:
        """A block in a form, with its options as the stack and the command line say them."""
        if (name, form) not in self._here:
            asked = self._asked(name)
            # Of a block ``provider`` is an option like any other; only a virtual is stood for by another block.
            said = {k: v for k, v in self._settings.get(name, {}).items() if k != "version"}
            if not asked and not said:
                self._here[name, form] = self._node.usual(name, form)
            else:
                where = partial(self._where, name)
                cls = self._catalog.block(name)
                choice = block_options(cls, self._node.facts, asked, said, where, dict(form))
                self._here[name, form] = self._node.with_options(name, choice)
        return self._here[name, form]

    def _asked(self, name: str) -> dict[str, OptionValue]:
        """The stack's options of a block, and those of the virtual that it stands for which it has."""
        own = self._stack.blocks.get(name, StackBlock()).options
        virtual = self._catalog.identifier(name)
        shared = self._stack.blocks[virtual].options if virtual != name and virtual in self._stack.blocks else {}
        if not shared:
            return own
        known = {field.encode_name for field in option_fields(self._catalog.block(name).Options)}
        return {**{option: value for option, value in shared.items() if option in known}, **own}

    def _where(self, name: str, option: str) -> Position | str | None:
        if option in self._settings.get(name, {}):
            return "--set"
        for block in (name, self._catalog.identifier(name)):
            asked = self._stack.blocks.get(block)
            if asked is not None and option in asked.options and self._document is not None:
                return self._document.position(["blocks", block, "options", option])
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names("block"))

    def __len__(self) -> int:
        return len(self._catalog.names("block"))

    def __contains__(self, name: object) -> bool:
        return self._catalog.has_block(str(name))


def _wrong_virtual_settings(catalog: Catalog, name: str, said: Mapping[str, str]) -> list[Problem]:
    providers = catalog.virtuals[name]
    problems = Problems()
    for option, value in said.items():
        if option == "provider" and value not in providers:
            message = f"{value!r} does not provide {name}"
            problems.add(message, "--set", remedy=did_you_mean(value, providers))
        elif option not in RESERVED:
            message = f"{name} is a virtual and has no option {option!r}"
            problems.add(message, "--set", f"{name}.provider or {name}.version", f"set it on {' or '.join(providers)}")
    return problems
