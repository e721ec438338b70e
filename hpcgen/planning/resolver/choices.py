"""The options of every block that may come up while versions are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from hpcgen.blocks.options import RESERVED, BlockChoice, block_options, option_fields
from hpcgen.blocks.requirements import Form
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Position, Problem, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.planning.resolver.node import BlockHere, ResolverNode


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
        return form if form and self.of(name, form) != self[name] else ()

    def of(self, name: str, form: Form) -> BlockChoice:
        """The options of a block in a form."""
        return self.here(name, form).choice

    def here(self, name: str, form: Form) -> BlockHere:
        """A block in a form, with its options as the stack and the command line say them."""
        if (name, form) not in self._here:
            asked = self._stack.blocks.get(name, StackBlock())
            # Of a block ``provider`` is an option like any other; only a virtual is stood for by another block.
            said = {k: v for k, v in self._settings.get(name, {}).items() if k != "version"}
            if not asked.options and not said:
                self._here[name, form] = self._node.usual(name, form)
            else:
                where = partial(self._where, name)
                cls = self._catalog.block(name)
                choice = block_options(cls, self._node.facts, asked.options, said, where, dict(form))
                self._here[name, form] = self._node.with_options(name, choice)
        return self._here[name, form]

    def _where(self, name: str, option: str) -> Position | str | None:
        if option in self._settings.get(name, {}):
            return "--set"
        asked = self._stack.blocks.get(name)
        if asked is not None and option in asked.options and self._document is not None:
            return self._document.position(["blocks", name, "options", option])
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
