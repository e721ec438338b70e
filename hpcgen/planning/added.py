"""``--add`` of packages and files, beside names of blocks: ``pip:h5py==3.11``, ``apt:git``, ``copy:DIR=/opt/NAME``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpcgen.blocks.options import option_fields
from hpcgen.blocks.requirements import Origin, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.project import BLOCK
from hpcgen.core.model.stack import Copied, Stack, StackBlock
from hpcgen.core.secret_rules import public

KINDS = {"pip": (BLOCK, "h5py==3.11.0"), "apt": ("os_packages", "git")}
"""For what stands before the colon: the block whose option ``packages`` takes it, and an example."""


class Added(NamedTuple):
    """The additions of ``--add``: the stack with further packages, names of blocks, and requirements on blocks."""

    stack: Stack
    blocks: list[str]
    demands: list[Requirement]


def added_packages(catalog: Catalog, stack: Stack, added: Sequence[str]) -> Added:
    """Separate packages from blocks. A Python package that a block brings becomes a requirement on that block.

    Raises
    ------
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
    """The requirement on the block that provides a Python package; None where none does."""
    from hpcgen.readers.pip_text import Fault, public_range, requirement

    try:
        asked = requirement(package, Position("--add", 1, 1))
    except Fault:
        return None
    block = catalog.distributions.get(asked.name)
    if block is None:
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


# ``--add copy:FOLDER=/opt/NAME``: files of this machine beside the blocks and packages that :mod:`added` reads.

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
