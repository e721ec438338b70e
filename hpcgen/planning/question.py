"""The resolver's question: the requests of stack, ``--add`` and ``--set``, and the facts of the site."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from hpcgen.blocks.requirements import Origin, Requirement, version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems, UnknownNameError
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.planning.resolver.choices import Choices
from hpcgen.planning.resolver.node import node_of
from hpcgen.planning.resolver.question import Question
from hpcgen.planning.resolver.settings import unknown_block


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
) -> Question:
    """The question for the resolver.

    Parameters
    ----------
    said: what ``--set`` says, by block and option.
    added: names of the stack's blocks that ``--add`` brought.
    kept: versions of blocks that are tried before all others.
    of_files: what files of the user's project ask for of blocks.
    """
    node = node_of(catalog, site, partition, site_document)
    return Question(
        node=node,
        choices=Choices(node, stack, stack_document, said),
        # Before the stack's own, so that what the files ask for is built before the packages that need it.
        roots=[*of_files, *_roots(catalog, stack, stack_document, said, added)],
        kept=kept or {},
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
