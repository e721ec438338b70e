"""What a shell completes: names of sites, stacks and blocks, kinds of node, queues, settings, licences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click
import msgspec
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from hpcgen.cli.common import collections_of
from hpcgen.core.errors import HpcgenError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.site import Partition


class Given(msgspec.Struct, frozen=True):
    """What of the line is there already that says how it may go on."""

    kind: str = ""
    name: str = ""
    site: str | None = None
    stack: str | None = None
    partition: str | None = None
    settings: tuple[str, ...] = ()


Words = Callable[["Catalog", Given, str], Iterable[str]]


def completions(what: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """How a word may go on that names a ``site``, ``stack``, ``block``, ``partition``, and so on, or a ``file``."""
    from hpcgen.catalog.catalog import Catalog

    if what == "file" or (what in ("site", "stack") and ("/" in incomplete or "." in incomplete)):
        return [CompletionItem(incomplete, type="file")]
    given = Given(**{name: ctx.params[name] for name in Given.__struct_fields__ if ctx.params.get(name)})
    found: list[str] = []
    # A line that is not whole yet may name what does not exist.
    with suppress(HpcgenError):
        found = list(_WORDS[what](Catalog(collections_of(ctx)), given, incomplete))
    return [CompletionItem(word) for word in found if word.startswith(incomplete)]


def _names(kind: str) -> Words:
    return lambda catalog, given, incomplete: catalog.names(kind)


def _formats(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    from hpcgen.recipe.formats import FORMATS

    return FORMATS.names()


def _named(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    """What ``show KIND`` is followed by."""
    return catalog.names(given.kind)


def _partitions(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    return list(catalog.site(given.site or given.name).partitions)


def _queues(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    site = catalog.site(given.site or "")
    partition: Partition | None = site.partitions.get(given.partition or site.default_partition)
    return [queue.name for queue in partition.queues] if partition is not None else []


def _licences(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    """Of what is planned, or of all blocks where site and stack are not there yet."""
    from hpcgen.blocks.capabilities import Licence

    if given.site and given.stack:
        from hpcgen.planning.planner import make_plan

        site, stack = catalog.site(given.site), catalog.stack(given.stack)
        # Files that are copied have no licence that anybody accepts, and may take long to read.
        stack = msgspec.structs.replace(stack, copy=[])
        plan = make_plan(
            catalog, site, stack, settings=given.settings, partition=given.partition, allow_unsupported=True
        )
        return ["all", *(licence.name for licence in plan.licences)]
    modules = (sys.modules[catalog.block(name).__module__] for name in catalog.names("block"))
    return ["all", *{value.name: 0 for each in modules for value in vars(each).values() if isinstance(value, Licence)}]


def _settings(catalog: Catalog, given: Given, incomplete: str) -> Iterable[str]:
    """``BLOCK.``, then ``BLOCK.OPTION=``, then ``BLOCK.OPTION=VALUE``."""
    from hpcgen.blocks.options import option_fields

    block, dot, option = incomplete.partition(".")
    option, equals, _ = option.partition("=")
    if not dot:
        return [f"{name}." for name in (*catalog.virtuals, *catalog.names("block"))]
    virtual = block in catalog.virtuals
    fields = () if virtual else option_fields(catalog.block(block).Options)
    kinds = {field.encode_name: field.type for field in fields}
    if not equals:
        return [f"{block}.{name}=" for name in (*kinds, "version", *(("provider",) if virtual else ()))]
    if option == "provider" and virtual:
        values: Iterable[str] = catalog.virtuals[block]
    elif option == "version":
        values = catalog.releases(block) if not virtual else ()
    elif kinds.get(option) is bool:
        values = ("true", "false")
    else:
        values = (value for value in getattr(kinds.get(option), "__args__", ()) if isinstance(value, str))
    return [f"{block}.{option}={value}" for value in values]


_WORDS: dict[str, Words] = {
    "site": _names("site"),
    "stack": _names("stack"),
    "block": _names("block"),
    "format": _formats,
    "named": _named,
    "partition": _partitions,
    "queue": _queues,
    "licence": _licences,
    "setting": _settings,
}


class _Bash(BashComplete):
    """Bash takes ``=`` for the end of a word, so ``--set BLOCK.OPTION=VALUE`` arrives in three."""

    source_template = BashComplete.source_template.replace(
        "    return 0",
        # What goes on after it is not followed by a space.
        "    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *[.=] ]] || compopt -o nospace\n\n    return 0",
    )
    cut = 0

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the present one and that word, each in one piece."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        joined = False
        for word in [*args, incomplete]:
            if words and (joined or word == "="):
                self.cut = len(words[-1]) + (word == "=")
                words[-1] += word
            else:
                self.cut = 0
                words.append(word)
            joined = word == "="
        if words[-1].startswith("-"):
            # Of `--option=value` click itself completes the value alone.
            self.cut = 0
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Without what stands before the present word for bash."""
        return f"{item.type},{item.value[self.cut :]}"


def register() -> None:
    """Let ``hpcgen`` complete as this module says, and ``hpcgen completion bash`` print what calls it."""
    add_completion_class(_Bash)
