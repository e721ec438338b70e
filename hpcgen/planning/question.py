"""What the user asks of the planner, ``--add`` of packages and files too, and what the resolver is asked for it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpcgen.blocks.options import option_fields
from hpcgen.blocks.requirements import Origin, Requirement, version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, PolicyError, Position, Problems, Remedy, UnknownNameError
from hpcgen.core.model.project import BLOCK
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Copied, Stack, StackBlock
from hpcgen.core.secret_rules import public
from hpcgen.planning.resolver.node import node_of
from hpcgen.planning.resolver.question import Apart, Choices, Question, unknown_block

# The request to the planner, and the errors that another request may avoid.

_NOTHING: dict[str, Any] = {"version": "", "provider": None}


class PlanRequest(msgspec.Struct, frozen=True):
    """The user's overrides: the stack, the partition, ``--set``, ``--add``."""

    stack: Stack
    partition: str | None
    settings: tuple[str, ...]
    added: tuple[str, ...] = ()

    def after(self, remedy: Remedy) -> PlanRequest:
        """The same with a remedy's changes."""
        settings = [text for text in self.settings if text.partition("=")[0] not in remedy.settings]
        settings += [f"{name}={value}" for name, value in remedy.settings.items() if value is not None]
        blocks = dict(self.stack.blocks)
        for name, value in remedy.stack.items():
            block, dot, what = name.rpartition(".")
            if not dot:
                blocks.pop(name, None)
                continue
            blocks[block] = msgspec.structs.replace(blocks[block], **{what: value or _NOTHING[what]})
        stack = msgspec.structs.replace(self.stack, blocks=blocks)
        added = tuple(name for name in (*self.added, *remedy.added) if name not in remedy.without)
        return PlanRequest(stack, remedy.partition or self.partition, tuple(settings), added)

    def names(self) -> list[str]:
        """Each BLOCK.OPTION that ``--set`` names."""
        return list(dict.fromkeys(text.partition("=")[0] for text in self.settings))

    def said(self, name: str) -> str | None:
        """The value of a BLOCK.OPTION in ``--set``."""
        values = [value for text in self.settings for key, _, value in [text.partition("=")] if key == name]
        return values[-1] if values else None


class MisfitError(PolicyError):
    """The job does not fit the machine, or breaks the contract with it; another job may be the remedy.

    ``idle``: blocks that leave GPUs alone which the job asks for, so that another release or option may be it.
    """

    def __init__(self, problems: Problems, idle: Sequence[str] = ()) -> None:
        super().__init__(problems)
        self.idle = idle


class UnusedSettingError(UnknownNameError):
    """``--set`` names blocks that the plan does not have: ``names``."""

    def __init__(self, problems: Problems, names: Sequence[str]) -> None:
        super().__init__(problems)
        self.names = names


def with_blocks(catalog: Catalog, stack: Stack, added: Sequence[str]) -> Stack:
    """The stack with further blocks, each as if it stood there by its name alone."""
    Problems(wrong for name in added for wrong in unknown_block(name, catalog, "--add")).raise_as(UnknownNameError)
    more = {name: StackBlock() for name in added if name not in stack.blocks}
    return msgspec.structs.replace(stack, blocks={**stack.blocks, **more}) if more else stack


def question_of(
    catalog: Catalog,
    site: Site,
    partition: str,
    stack: Stack,
    said: Mapping[str, Mapping[str, str]],
    added: Collection[str] = (),
    site_document: Document | None = None,
    stack_document: Document | None = None,
    kept: Mapping[str, str] | None = None,
    of_files: Sequence[Requirement] = (),
    late: Sequence[Requirement] = (),
    apart: Sequence[Apart] = (),
) -> Question:
    """The question for the resolver.

    said: what ``--set`` says, by block and option.
    added: names of the stack's blocks that ``--add`` brought.
    kept: versions of blocks that are tried before all others.
    of_files: what files of the user's project ask for of blocks.
    late: what is there by default; chosen after all that somebody asks for.
    apart: releases whose Python packages do not go together.
    """
    beside: dict[tuple[str, str], list[tuple[str, bool, Requirement]]] = {}
    for each in apart:
        beside.setdefault((each.block, each.version), []).append((each.requirement.identifier, False, each.requirement))
    own = [requirement for _, _, requirement in beside.pop(("", ""), ())]
    node = node_of(catalog, site, partition, site_document)
    return Question(
        node=node,
        choices=Choices(node, stack, stack_document, said),
        # Before the stack's own, so that what the files ask for is built before the packages that need it.
        roots=[*of_files, *_roots(catalog, stack, stack_document, said, added), *own, *late],
        kept=kept or {},
        beside=beside,
    )


def place_in(document: Document | None, path: str) -> Position | None:
    """The position of a path of words with dots between them."""
    return document.position(path.split(".")) if document is not None else None


def _roots(
    catalog: Catalog,
    stack: Stack,
    document: Document | None,
    said: Mapping[str, Mapping[str, str]],
    added: Collection[str],
) -> list[Requirement]:
    """Requirements of the stack, with what ``--add`` names, then of ``--set``, each with its place."""
    roots: list[Requirement] = []

    def add(name: str, versions: str, provider: str | None, origin: Origin) -> None:
        # What the stack names is there, and as a whole; --set narrows what is there anyway.
        demanded = origin.kind != "set"
        enough: Mapping[str, str] | None = {} if demanded else None
        version_range(versions or ">=0")
        if versions[:1].isdigit():
            versions = f"=={versions}"
        if name in catalog.virtuals:
            providers = catalog.virtuals[name] if provider is None else [provider]
            allowed = dict.fromkeys(providers, versions) if provider or versions else None
            roots.append(Requirement(name, allowed, origin, enough, demanded))
        else:
            roots.append(Requirement(catalog.identifier(name), {name: versions}, origin, enough, demanded))

    for name, block in stack.blocks.items():
        origin = Origin("--add", kind="stack", asked=name)
        if name not in added:
            place = _stack_place(document, name)
            origin = Origin(f"stack {stack.name}", place, "stack", path=f"blocks.{name}", asked=name)
        add(name, block.version, block.provider, origin)
    if stack.run.mpi and "mpi" in stack.blocks:
        add("rank_test", "", None, Origin("the self-test of MPI", lambda: None, "stack"))
    for name, values in said.items():
        versions = values.get("version", "")
        provider = values.get("provider") if name in catalog.virtuals else None
        if versions or provider:
            _check_range(versions, f"--set {name}.version")
            origin = Origin(f"--set {name}", lambda: None, "set", asked=name)
            add(name, versions, provider, origin)
            for virtual, providers in catalog.virtuals.items():
                # Where it stands for another virtual as well, its version is the same.
                if name in providers and virtual != catalog.identifier(name):
                    ranges = {**dict.fromkeys(providers, ""), name: versions}
                    roots.append(Requirement(virtual, ranges, origin, demanded=False))
    return roots


def _check_range(versions: str, where: str) -> None:
    if versions:
        try:
            version_range(versions)
        except InputError as error:
            raise InputError([problem.at(where) for problem in error.problems]) from None


def _stack_place(document: Document | None, name: str) -> Any:
    return lambda: document.position(["blocks", name], key=True) if document is not None else None


KINDS = {"pip": (BLOCK, "h5py==3.11.0"), "apt": ("os_packages", "git")}
"""For what stands before the colon: the block whose option ``packages`` takes it, and an example."""


class Added(NamedTuple):
    """The additions of ``--add``: the stack with further packages, names of blocks, and requirements on blocks."""

    stack: Stack
    blocks: list[str]
    demands: list[Requirement]


def added_packages(catalog: Catalog, stack: Stack, added: Sequence[str]) -> Added:
    """Separate packages from blocks. A Python package that a block brings becomes a requirement on that block.

    InputError: a kind that is none, or no name or version of a package; all of them.
    """
    found = Added(stack, [], [])
    packages: dict[str, list[str]] = {}
    problems = Problems()
    for text in added:
        kind, colon, package = text.partition(":")
        if not colon:
            found.blocks.append(text)
        elif kind not in KINDS:
            message = f"{text!r} is neither a block nor a package"
            problems.add(message, "--add", " or ".join(f"{name}:{of[1]}" for name, of in KINDS.items()))
        elif (demand := _by_block(catalog, text, package) if kind == "pip" else None) is not None:
            found.demands.append(demand)
        else:
            problems += _wrong(catalog, kind, package)
            packages.setdefault(KINDS[kind][0], []).append(package)
    problems.raise_as(InputError)
    return found._replace(stack=_with(stack, packages))


def _by_block(catalog: Catalog, text: str, package: str) -> Requirement | None:
    """The requirement on the block that provides a Python package; None where none does in that version."""
    from hpcgen.planning.own_wheels import is_listed
    from hpcgen.readers.pip_text import Fault, public_range, requirement

    try:
        asked = requirement(package, Position("--add", 1, 1))
    except Fault:
        return None
    block = catalog.distributions.get(asked.name)
    if block is None or (asked.version and not is_listed(catalog, block, asked.specifier)):
        return None
    return Requirement(
        catalog.identifier(block), {block: public_range(asked.specifier)}, Origin(f"--add {text}", kind="file"), {}
    )


def _wrong(catalog: Catalog, kind: str, package: str) -> Problems:
    """The problem of a package that its block does not accept."""
    block, example = KINDS[kind]
    field = next(each for each in option_fields(catalog.block(block).Options) if each.encode_name == "packages")
    problems = Problems()
    try:
        msgspec.convert([package], field.type)
    except msgspec.ValidationError:
        problems.add(f"{kind}:{public(package, 120)!r} cannot be added", "--add", f"such as {kind}:{example}")
    return problems


def _with(stack: Stack, packages: dict[str, list[str]]) -> Stack:
    blocks = dict(stack.blocks)
    for name, more in packages.items():
        block = blocks.get(name, StackBlock())
        before = block.options.get("packages")
        listed = [*(before if isinstance(before, list) else []), *more]
        options = {**block.options, "packages": list(dict.fromkeys(listed))}
        blocks[name] = msgspec.structs.replace(block, options=options)
    return msgspec.structs.replace(stack, blocks=blocks)


# ``--add copy:FOLDER=/opt/NAME``: files of this machine beside the blocks and packages that are read above.

KIND = "copy:"


class AddedCopy(msgspec.Struct, frozen=True):
    """A file or folder of this machine: its parent folder, and the entry of a stack for it there."""

    folder: Path
    entry: Copied


class AddedWords(msgspec.Struct, frozen=True):
    """Words of ``--add``: files of this machine, and the others, which name blocks and packages."""

    others: tuple[str, ...] = ()
    copies: tuple[AddedCopy, ...] = ()

    def packages(self, kind: str) -> list[str]:
        """The text after ``pip:`` or ``apt:``."""
        return [word.partition(":")[2] for word in self.others if word.startswith(f"{kind}:")]


def added_words(words: Sequence[str]) -> AddedWords:
    """Separate files from blocks and packages; InputError for all that cannot be copied."""
    copies: list[AddedCopy] = []
    problems = Problems()
    known = list(dict.fromkeys(words))
    for word in known:
        if word.startswith(KIND):
            with problems.caught(lambda: "--add"):
                copies.append(_copy(word.removeprefix(KIND)))
    problems.raise_as(InputError)
    return AddedWords(tuple(word for word in known if not word.startswith(KIND)), tuple(copies))


def _copy(text: str) -> AddedCopy:
    source, equals, target = text.rpartition("=")
    if not equals or not source:
        raise InputError(f"copy:{text} needs SOURCE=TARGET", expected="copy:FOLDER=/opt/NAME")
    path = Path(os.path.normpath(Path.cwd() / source))
    try:
        entry = record_from({"from": path.name, "to": target}, Copied)
    except msgspec.ValidationError as failure:
        raise InputError(f"copy:{text}: {failure}", expected="copy:FOLDER=/opt/NAME") from failure
    return AddedCopy(path.parent, entry)
