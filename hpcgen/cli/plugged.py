"""What plug-ins bring: hpcgen's own by the table in :mod:`hpcgen.plugins`, those of installed packages by entry points.

No plug-in is imported to list its commands, and none before one of them is used. This is the only module that knows
of plug-ins.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from hpcgen import plugins
from hpcgen.cli import COMMANDS, GROUPS
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.support.registry import described_entry_points, load_target

if TYPE_CHECKING:
    from hpcgen.catalog.trust import Allow
    from hpcgen.core.config.yamlfile import Document
    from hpcgen.core.model.site import Site
    from hpcgen.supply.pin.locking import BazelFetcher

SCHEMAS = plugins.SCHEMAS
INSTALLED = "plug-ins"
"""The group of the commands that installed packages bring."""


class FileKind(NamedTuple):
    """A kind of file that a plug-in reads.

    ``key``: one that no other kind of YAML file has; ``words``: what it is called; ``ending``: of files of this kind
    that are no YAML, or ""; ``target``: what checks one.
    """

    key: str
    words: str
    ending: str
    target: str

    def check(self, document: Document | None, path: Path, folders: Sequence[Path], allow: Allow) -> list[Site]:
        """The sites for which it asks for images; InputError with every mistake of the file.

        document: the file as it was read; None if it is no YAML.
        folders: collections beside the built-in one, in which it may name things.
        allow: whether the Python of other collections, which it names, may run.
        """
        found: list[Site] | None = load_target(self.target)(document, path, folders, allow)
        return found or []


def file_kinds() -> list[FileKind]:
    """The kinds of files that plug-ins read."""
    return [FileKind(key, *row) for key, row in plugins.FILES.items()]


class ExtensibleCommand(click.Command):
    """A command to which plug-ins add options: these are loaded for its help, and where its own are not enough.

    ``OPTIONS`` of :mod:`hpcgen.plugins` names what adds them. It is given the function of the command, and returns one
    with options, as click's decorators make it, that takes the values of all.
    """

    is_extended = False

    def extend(self) -> None:
        """Load what plug-ins add, once; it stands after the command's own options."""
        from hpcgen.cli import COMMON

        more = () if self.is_extended else plugins.OPTIONS.get(str(self.name), ())
        self.is_extended = True
        for target in more:
            assert self.callback is not None
            self.callback = load_target(target)(inspect.unwrap(self.callback))
            added: list[click.Parameter] = vars(self.callback)["__click_params__"]
            at = len(self.params) - sum(option in self.params for option in COMMON)
            self.params[at:at] = reversed(added)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As of every command, but an option that it does not have may be one of a plug-in."""
        if ctx.resilient_parsing:
            self.extend()  # a shell completes a word
        try:
            return super().parse_args(ctx, [*args])
        except click.NoSuchOption:
            if self.is_extended:
                raise
            self.extend()
            return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        self.extend()
        return super().get_help(ctx)


def fetcher_of(tool: str) -> BazelFetcher:
    """What runs a build tool to learn what it fetches, as :func:`hpcgen.supply.pin.locking.make_lock` takes it."""
    fetcher: BazelFetcher = load_target(plugins.FETCHERS[tool])
    return fetcher


def every_group(installed: bool = True) -> dict[str, dict[str, str]]:
    """All commands with a line about each, by what they are for.

    ``installed``: those of installed packages, too; the line about one is what its package says of itself.
    """
    found = {group: dict(lines) for group, lines in GROUPS.items()}
    last = {"help": found.pop("help")}
    for group, rows in plugins.COMMANDS.items():
        found.setdefault(group, {}).update({name: line for name, (_, line) in rows.items()})
    if installed and (more := _installed()):
        found[INSTALLED] = {name: summary for name, (_, summary) in more.items()}
    return found | last


def plugged_command(name: str) -> click.Command | None:
    """The command of a plug-in; None if no plug-in has one of this name.

    InputError: an installed package names a command that cannot be loaded.
    """
    if name in (own := _own()):
        command: click.Command = load_target(own[name][0])
        return command
    return _strangers_command(name, found[name][0]) if name in (found := _installed()) else None


def failure_of(name: str, error: Exception) -> Exception:
    """What is told of a command that failed in an unexpected way: that of an installed package is no bug of hpcgen."""
    if name not in _installed():
        return error
    remedy = "--debug before the command shows the traceback, for the authors of the package"
    return HpcgenError(
        f"the command {name} of an installed package failed: {type(error).__name__}: {error}", remedy=remedy
    )


def plugged_examples(name: str) -> Mapping[str, Sequence[str]]:
    """The examples of a plug-in's command and of those below it, by path: ``EXAMPLES`` in the module of the command."""
    target = (_own().get(name) or _installed()[name])[0]
    found: Mapping[str, Sequence[str]] = getattr(importlib.import_module(target.partition(":")[0]), "EXAMPLES", {})
    return found


def _own() -> dict[str, tuple[str, str]]:
    return {name: row for rows in plugins.COMMANDS.values() for name, row in rows.items()}


def _installed() -> dict[str, tuple[str, str]]:
    """Commands of installed packages: what each is, and what its package says of itself."""
    taken = {*COMMANDS, *_own()}
    found = sorted(described_entry_points("hpcgen.commands"), reverse=True)
    return {name: (target, summary) for name, target, summary in reversed(found) if name not in taken}


def _strangers_command(name: str, target: str) -> click.Command:
    """The command of an installed package; what goes wrong with it is no bug of hpcgen."""
    remedy = "update the package that brings it, or remove it"
    try:
        command = load_target(target)
    except Exception as error:
        message = f"the command {name} of an installed package cannot be loaded: {type(error).__name__}: {error}"
        raise InputError(message, target, remedy=remedy) from error
    if not isinstance(command, click.Command):
        raise InputError(f"the command {name} of an installed package is not a click command", target, remedy=remedy)
    return command
